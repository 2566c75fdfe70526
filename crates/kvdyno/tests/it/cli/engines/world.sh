# Two machines, n1 and n2, as far as engines can tell, and a Redis on the first: in namespaces of their own, which
# end with this shell. The caller's commands follow.
set -u
ip link set lo up
ip link add e0 type veth peer name e1
ip link set e0 up
ip link set e1 up
ip addr add 10.9.0.1/24 dev e0
ip addr add 10.9.0.2/24 dev e0
mount -t proc proc /proc
printf '127.0.0.1 localhost\n10.9.0.1 n1\n10.9.0.2 n2\n' > hosts
mount --bind hosts /etc/hosts
hostname n1
redis-server --bind 10.9.0.1 --port 6379 --dir "$PWD" --save "" --protected-mode no > redis.log &
export KVDYNO_TOKEN=0123456789abcdef0123456789abcdef

# Waits until a command succeeds, for at most two minutes.
until_it() {
  for _ in $(seq 1200); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done
  echo "never: $*" >&2
  exit 99
}

# The exit code of the command before, under a name.
code() { echo "$1 $?" >> codes; echo "$1 after $SECONDS s"; }

# Succeeds once the measured phase of a result has done more than 600 operations: on a busy machine an interval has few.
has_done_enough() { awk -F, '$4 == "run" { done += $15 } END { exit done <= 600 }' "$1/timeline.csv"; }
under_load() { until_it has_done_enough "$1"; }

# Kills the kvdyno in whose environment this is, or sends it another signal.
kill_the_one_with() {
  for process in /proc/[0-9]*; do
    [ "$(cat "$process/comm" 2> /dev/null)" = kvdyno ] &&
      tr '\0' '\n' < "$process/environ" | grep -qx "$1" && kill "-${2:-9}" "${process#/proc/}"
  done
}

empty() { redis-cli -h 10.9.0.1 flushall; }

# A whole run by `start`, and one that loses the process with this in its environment: both on no records.
whole_and_lost() {
  start counted.toml "${@:2}" --out whole
  code whole
  empty
  start $LONG "${@:2}" --out lost & job=$!
  under_load lost
  kill_the_one_with "$1"
  wait $job
  code lost
  empty
}

until_it redis-cli -h 10.9.0.1 ping
