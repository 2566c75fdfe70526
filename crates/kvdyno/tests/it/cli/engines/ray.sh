export RAY_DISABLE_IMPORT_WARNING=1 RAY_USAGE_STATS_ENABLED=0 PYTHONPATH=$PYTHON_PACKAGE PYTHONDONTWRITEBYTECODE=1
# The dashboard and its agent are of no use here, and half of the time.
node() {
  ray start --node-ip-address "$1" --num-cpus 2 --object-store-memory 80000000 --temp-dir "$PWD/ray" \
    --disable-usage-stats "${@:2}" > "node-$1.log" 2>&1
}
node 10.9.0.1 --head --port 6380 --include-dashboard false
unshare --uts sh -c "hostname n2; exec ray start --address 10.9.0.1:6380 --node-ip-address 10.9.0.2 --num-cpus 2 \
  --object-store-memory 80000000 --disable-usage-stats" > node-10.9.0.2.log 2>&1
echo "two nodes after $SECONDS s"
start() {
  python -m kvdyno.ray run "$@" --store redis://10.9.0.1:6379 --quiet --ray-address 10.9.0.1:6380
}
agents() { pgrep -xc kvdyno; }
none_left() { [ "$(agents)" = 0 ]; }

start counted.toml --agents 3 --out never
code counted-before
whole_and_lost KVDYNO_RANK=2 --agents 2
start $LONG --agents 2 --out orphaned & job=$!
under_load orphaned
# The driver, a child of the job.
kill -9 "$(pgrep -P $job)"
wait $job
until_it none_left
echo "no agent is left after $SECONDS s"
code none-left
