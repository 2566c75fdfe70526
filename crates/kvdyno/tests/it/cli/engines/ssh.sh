# Each machine has an sshd, and processes that the others' do not see.
mount -t tmpfs none /run
mkdir /run/sshd
ssh-keygen -q -t ed25519 -N '' -f key
machine() {
  cat > "sshd-$1" <<CONFIG
ListenAddress $2
HostKey $PWD/key
AuthorizedKeysFile $PWD/key.pub
PidFile none
StrictModes no
UsePAM no
SetEnv PATH=$PATH MACHINE=$1
CONFIG
  unshare --uts --pid --fork --kill-child --mount-proc sh -c \
    "hostname $1; exec /usr/sbin/sshd -D -e -f $PWD/sshd-$1" 2> "sshd-$1.log" &
  until_it ssh "$1" true
}
# What a user has in ~/.ssh.
mkdir bin
cat > bin/ssh <<CLIENT
#!/bin/sh
exec /usr/bin/ssh -i $PWD/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "\$@"
CLIENT
chmod +x bin/ssh
export PATH=$PWD/bin:$PATH
machine n1 10.9.0.1
machine n2 10.9.0.2

start() {
  kvdyno run "$@" --store redis://10.9.0.1:6379 --agents deployment.toml --listen 10.9.0.1:7000 --quiet
}
whole_and_lost MACHINE=n2
agents() { pgrep -fx "kvdyno agent --conductor 10.9.0.1:7000"; }
# An agent that stands still does not end by itself.
start $LONG --out stands & job=$!
under_load stands
agents
code there
kill_the_one_with MACHINE=n2 STOP
wait $job
code stands
agents
code none-left
