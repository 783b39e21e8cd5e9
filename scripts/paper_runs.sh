#!/usr/bin/env bash
# Paper-scale runs on one GPU, with the paper's protocol.
#   scripts/paper_runs.sh WORK RECORD PROBLEM RESOLUTION "METHOD ..." ["SEED ..."] [fit options]
# Data and runs go under WORK; RECORD is the JSON to keep, such as results/poisson-128/fno.json.
# Outside a git checkout set TWOSCALE_COMMIT, which the records name.
set -euo pipefail
given="scripts/paper_runs.sh WORK $2 $3 $4 '$5' '${6:-0}' ${*:7}"
work=$1 record=$2 problem=$3 resolution=$4 methods=$5 seeds=${6:-0}
shift $(($# < 6 ? $# : 6))
data=$work/$problem-$resolution.zarr
python=${PYTHON:-python3}
if [ ! -e "$data" ]; then
  time $python -m twoscale generate "$problem" --resolution "$resolution" --samples 10000 --seed 0 --out "$data"
fi
runs=()
for seed in $seeds; do
  for method in $methods; do
    run=$work/runs/$problem-$resolution-$method-$seed
    time $python -m twoscale fit "$data" --method "$method" --seed "$seed" --out "$run" --overwrite "$@"
    runs+=("$run")
  done
done
$python -m twoscale.report.records "${runs[@]}" --out "$record" --command "$given" --overwrite
