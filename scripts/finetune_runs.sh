#!/usr/bin/env bash
# Paper-scale fine-tuning on one GPU: each base run, then each objective from it.
#   scripts/finetune_runs.sh WORK RECORD PROBLEM RESOLUTION METHOD "OBJECTIVE ..." ["SEED ..."]
# Data and runs go under WORK; RECORD is the JSON to keep, such as results/finetuning/poisson-128.json.
# Outside a git checkout set TWOSCALE_COMMIT, which the records name. With PARALLEL=1 the seeds run
# side by side: sooner done, but their timings are those of a shared machine.
set -euo pipefail
given="PARALLEL=${PARALLEL:-0} scripts/finetune_runs.sh WORK $2 $3 $4 $5 '$6' '${7:-0}'"
work=$1 record=$2 problem=$3 resolution=$4 method=$5 objectives=$6 seeds=${7:-0}
data=$work/$problem-$resolution.zarr
python=${PYTHON:-python3}
if [ ! -e "$data" ]; then
  $python -m twoscale generate "$problem" --resolution "$resolution" --samples 10000 --seed 0 --out "$data"
fi
base_of() { echo "$work/runs/$problem-$resolution-$method-$1"; }
one_seed() {
  local base
  base=$(base_of "$1")
  [ -e "$base" ] || $python -m twoscale fit "$data" --method "$method" --seed "$1" --out "$base"
  for objective in $objectives; do
    [ -e "$base-$objective" ] || $python -m twoscale finetune "$base" --objective "$objective" --out "$base-$objective"
  done
}
runs=() jobs=()
for seed in $seeds; do
  if [ "${PARALLEL:-0}" = 1 ]; then one_seed "$seed" & jobs+=($!); else one_seed "$seed"; fi
  runs+=("$(base_of "$seed")")
  for objective in $objectives; do runs+=("$(base_of "$seed")-$objective"); done
done
for job in ${jobs[@]+"${jobs[@]}"}; do wait "$job"; done
$python -m twoscale.report.records "${runs[@]}" --out "$record" --command "$given"
