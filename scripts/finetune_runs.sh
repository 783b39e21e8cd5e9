#!/usr/bin/env bash
# Paper-scale fine-tuning on one GPU: each base run, then each objective from it.
#   scripts/finetune_runs.sh WORK RECORD PROBLEM RESOLUTION METHOD "OBJECTIVE ..." ["SEED ..."]
# Data and runs go under WORK; RECORD is the JSON to keep, such as results/finetuning/poisson-128.json.
# Outside a git checkout set TWOSCALE_COMMIT, which the records name.
set -euo pipefail
given="scripts/finetune_runs.sh WORK $2 $3 $4 $5 '$6' '${7:-0}'"
work=$1 record=$2 problem=$3 resolution=$4 method=$5 objectives=$6 seeds=${7:-0}
data=$work/$problem-$resolution.zarr
python=${PYTHON:-python3}
if [ ! -e "$data" ]; then
  $python -m twoscale generate "$problem" --resolution "$resolution" --samples 10000 --seed 0 --out "$data"
fi
runs=()
for seed in $seeds; do
  base=$work/runs/$problem-$resolution-$method-$seed
  [ -e "$base" ] || $python -m twoscale fit "$data" --method "$method" --seed "$seed" --out "$base"
  runs+=("$base")
  for objective in $objectives; do
    $python -m twoscale finetune "$base" --objective "$objective" --out "$base-$objective" --overwrite
    runs+=("$base-$objective")
  done
done
$python -m twoscale.report.records "${runs[@]}" --out "$record" --command "$given"
