export SLURM_CONF=$PWD/slurm.conf
mkdir -p state spool-n1 spool-n2 munge
chmod 755 munge
head -c 128 /dev/urandom > munge/key
chmod 400 munge/key
cat > slurm.conf <<CONF
ClusterName=two
SlurmctldHost=n1
AuthType=auth/munge
AuthInfo=socket=$PWD/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$PWD/state
SlurmdSpoolDir=$PWD/spool-%n
SlurmctldPidFile=$PWD/slurmctld.pid
SlurmdPidFile=$PWD/slurmd-%n.pid
SlurmctldLogFile=$PWD/slurmctld.log
SlurmdLogFile=$PWD/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname=n1 NodeAddr=n1 Port=7001 CPUs=4
NodeName=n2 NodeHostname=n2 NodeAddr=n2 Port=7002 CPUs=4
PartitionName=p Nodes=n1,n2 Default=YES State=UP
CONF
PATH=$PATH:/usr/sbin
munged --force --key-file="$PWD/munge/key" --socket="$PWD/munge/socket" --pid-file="$PWD/munge/pid" \
  --log-file="$PWD/munge/log" --seed-file="$PWD/munge/seed"
slurmctld -i
slurmd -N n1
# Its processes see the name of their machine.
unshare --uts sh -c 'hostname n2; slurmd -N n2'
both_idle() { [ "$(timeout 5 sinfo -h -o %T%D)" = idle2 ]; }
until_it both_idle
start() { srun -N 2 -n 3 --kill-on-bad-exit=0 kvdyno run "$@" --store redis://10.9.0.1:6379 --agents auto --quiet; }

whole_and_lost SLURM_PROCID=2
start $LONG --out ended & job=$!
under_load ended
scancel --signal=TERM "$(squeue -h -o %i)"
wait $job
code ended
