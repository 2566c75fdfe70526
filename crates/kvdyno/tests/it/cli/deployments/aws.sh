# AWS on loopback: moto serves its API, and the real `aws` asks it. Machines are only names, so ssh does nothing.
set -u
"$PYTHON/moto_server" -H 127.0.0.1 -p "$PORT" > moto.log 2>&1 & moto=$!
trap 'kill $moto $(cat waiting)' EXIT
mkdir bin
# The first command on a machine stands still.
printf '#!/bin/sh\ncd "%s"; echo $$ >> waiting; touch paused; exec sleep 600\n' "$PWD" > bin/ssh
# The first whole listing lags.
cat > bin/aws <<CLIENT
#!/bin/sh
case "\$*" in
  *placement-group*) echo "\$*" >> "$PWD/placement"; "$PYTHON/aws" "\$@" --generate-cli-skeleton output > /dev/null; exit;;
esac
if [ "\${STEP:-}" = list ] && [ ! -e "$PWD/lagged" ]; then
  case "\$*" in *describe-security-groups*) touch "$PWD/lagged";; esac
  exit 0
fi
exec "$PYTHON/aws" "\$@"
CLIENT
chmod +x bin/aws bin/ssh
export PATH=$PWD/bin:$PATH KVDYNO_STATE=$PWD/state
export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none
until_it() { for _ in $(seq 1200); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; echo "never: $*" >&2; exit 99; }
until_it curl -s "$AWS_ENDPOINT_URL/moto-api/"
up() {
  exec kvdyno deployment up aws-2014.toml --var IMAGE=ami-12c6146b --var CLIENTS=2 --var CONSOLE=10.0.0.1 \
    --var SECONDS_APART=100ms --var PROGRAM=/dev/null --yes
}
ids() { "$PYTHON/aws" ec2 --region us-east-1 "$1" --filters "$2" Name=tag-key,Values=kvdyno --query "$3" --output text; }
running=Name=instance-state-name,Values=pending,running,stopping,stopped

(up) & job=$!
until_it test -e paused
kill -9 $job
wait $job
cp state/deployments/*/record.json record
ids describe-instances $running 'Reservations[].Instances[].[InstanceId]' > made
kvdyno run quick --store map: --dry-run > /dev/null 2> notice
kvdyno deployment sweep 2> swept || exit 1
{
  ids describe-instances $running 'Reservations[].Instances[].[InstanceId]'
  ids describe-volumes Name=tag-key,Values=kvdyno 'Volumes[].[VolumeId]'
  ids describe-network-interfaces Name=tag-key,Values=kvdyno 'NetworkInterfaces[].[NetworkInterfaceId]'
  ids describe-security-groups Name=tag-key,Values=kvdyno 'SecurityGroups[].[GroupId]'
} > left
