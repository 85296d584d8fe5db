#!/usr/bin/env bash
# What a borrowed GPU is asked, in three parts of under nine minutes each, by the `python` of an
# environment that has tfbnn with the extras `fit` and `test`:
#
#     benchmarks/gpu.sh PART FOLDER [--quick]
#
# PART is 1, the tests marked gpu and the sweep of benchmarks/studies/cpu_gpu/run.py, the GPU first; 2, sixteen
# chains in one program; 3, predictions. Rows, tables and figures go to FOLDER/PART; those of
# cpu_gpu.jsonl are appended by hand to the ones in benchmarks/results, which the script then prints.
# --quick tries it with tiny sizes, on a machine without a GPU too; without it that is refused.
set -euo pipefail

usage() {
    echo "usage: benchmarks/gpu.sh 1|2|3 FOLDER [--quick]" >&2
    exit 2
}

[ $# -ge 2 ] && [ $# -le 3 ] || usage
part=$1
output=$(realpath -m "$2")/$part
quick=${3:-}
[ -z "$quick" ] || [ "$quick" = --quick ] || usage
cd "$(dirname "$0")/.."

if [ -z "$quick" ] && ! python -c "
import sys, tensorflow as tf
sys.exit(not tf.config.list_physical_devices('GPU'))"; then
    echo "TensorFlow sees no GPU here; --quick tries the script without one." >&2
    exit 1
fi

# measure SCRIPT OPTIONS: within what is left of the nine minutes; its tables are kept at its end.
measure() {
    local script=$1
    shift
    mkdir -p "$output"
    timeout $((530 - SECONDS)) python -m benchmarks "$script" --output "$output" $quick "$@"
}

case $part in
    1)
        # Five: pytest found no test.
        timeout 240 python -m pytest -q -m gpu || [ $? -eq 5 ] || exit 1
        measure cpu_gpu
        ;;
    2) measure cpu_gpu --chains 16 --modes XLA ;;
    3) measure prediction ;;
    *) usage ;;
esac
