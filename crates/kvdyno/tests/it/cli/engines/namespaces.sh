# Four machines for agents: each has a network of its own, and reaches the first by a bridge.
mount -t tmpfs none /run
ip link add bridge type bridge
ip addr add 10.9.1.1/24 dev bridge
ip link set bridge up
for number in 1 2 3 4; do
  ip netns add "load-$number"
  ip link add "to-$number" type veth peer name out netns "load-$number"
  ip link set "to-$number" master bridge up
  ip -n "load-$number" addr add "10.9.1.1$number/24" dev out
  ip -n "load-$number" link set out up
done
nodes=
for port in 7101 7102 7103; do
  redis-server --bind 10.9.1.1 --port $port --dir "$PWD" --save "" --protected-mode no \
    --cluster-enabled yes --cluster-config-file "node-$port" > "redis-$port.log" &
  nodes="$nodes 10.9.1.1:$port"
  until_it redis-cli -h 10.9.1.1 -p $port ping
done
redis-cli --cluster create $nodes --cluster-yes > create.log
in_step() { redis-cli -h 10.9.1.1 -p "$1" cluster info | grep -q cluster_state:ok; }
for port in 7101 7102 7103; do until_it in_step $port; done

kvdyno run counted.toml --store redis+cluster://10.9.1.1:7101 --agents 4 --listen 10.9.1.1:7000 --quiet \
  --out whole 2> told & job=$!
until_it grep -q KVDYNO_TOKEN= told
agents=
for number in 1 2 3 4; do
  ip netns exec "load-$number" kvdyno agent --conductor 10.9.1.1:7000 & agents="$agents $!"
done
wait $job
code conductor
cat told
for agent in $agents; do
  wait "$agent"
  code agent
done
for number in 1 2 3 4; do
  ip netns exec "load-$number" sh -c 'awk "/out:/ { print \$2 }" /proc/net/dev' >> received
done
