export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=$PWD/rsh
# In the place of ssh: the other machine is this one under another name.
cat > rsh <<'RSH'
#!/bin/sh
host=$1
shift
exec unshare --uts sh -c "hostname $host; $*"
RSH
chmod +x rsh
start() {
  mpirun --enable-recovery --host n1:2,n2:1 -x KVDYNO_TOKEN -x PATH \
    kvdyno run "$@" --store redis://10.9.0.1:6379 --agents auto --conductor n1:7411 --quiet
}

whole_and_lost OMPI_COMM_WORLD_RANK=2
# As by default: the loss of one ends all. What was measured is kept nevertheless.
mpirun --host n1:3 --mca odls_base_sigkill_timeout 3 \
  kvdyno run $LONG --store redis://10.9.0.1:6379 --agents auto:all --quiet --out ended & job=$!
under_load ended
kill_the_one_with OMPI_COMM_WORLD_RANK=2
wait $job
code ended
