#!/usr/bin/env bash
# slurm-up [WORKDIR]: a small real Slurm cluster on this one machine, for tests.
#   WORKDIR            default $HOME/.cache/minislurm; everything lives under it
#   MINISLURM_NODES    virtual nodes (slurmd -N)        default 2
#   MINISLURM_CPUS     CPUs each node pretends to have  default 16
#   MINISLURM_MEM      MB each node pretends to have    default 64000
#   MINISLURM_GPUS     fake GPUs a node                 default 8
#   MINISLURM_DBD      1: slurmdbd + MariaDB (sacct works); 0: no accounting
#   MINISLURM_INSTALL  1: apt-get install what is missing (needs root); 0: never
#   MINISLURM_PORT     first of the TCP ports used      default 16817
#   MINISLURM_WAIT     seconds to wait for each daemon  default 60
#   MINISLURM_REQUEUE_WAIT, MINISLURM_GRACE   seconds (5, 5): before a requeued job may
#                      start again; between preemption's signal and its kill
#   MINISLURM_EXTRA    lines added to slurm.conf (a repeated key: the last one counts)
# Idempotent: when the cluster at WORKDIR already answers, it only prints the env.
# stdout: `export ...` lines for eval; everything else goes to stderr.
set -euo pipefail
umask 022

W=${1:-${HOME:-/root}/.cache/minislurm}
NODES=${MINISLURM_NODES:-2} CPUS=${MINISLURM_CPUS:-16} MEM=${MINISLURM_MEM:-64000}
GPUS=${MINISLURM_GPUS:-8} DBD=${MINISLURM_DBD:-1} INSTALL=${MINISLURM_INSTALL:-1}
PORT=${MINISLURM_PORT:-16817} WAIT=${MINISLURM_WAIT:-60}
export PATH=$PATH:/usr/sbin:/sbin

say() { echo "slurm-up: $*" >&2; }
die() { say "$*"; [ -d "$W/log" ] && tail -n 15 "$W"/log/*.log >&2 || true; exit 1; }

mkdir -p "$W"; W=$(cd "$W" && pwd -P)
case $W in *[[:space:]\,]*) die "no spaces or commas in WORKDIR: $W";; esac
[ ${#W} -le 80 ] || die "WORKDIR too long for a unix socket path: $W"
exec 9>"$W/.lock"; flock 9          # one slurm-up/slurm-down at a time; daemons get 9>&-
mkdir -p "$W"/{etc,log,run,state,spool,dev,db}; chmod 700 "$W/db"
export SLURM_CONF=$W/etc/slurm.conf
ME=$(id -un) HOST=$(uname -n); HOST=${HOST%%.*}

# packages
need=()
command -v munged    >/dev/null || need+=(munge)
command -v slurmctld >/dev/null || need+=(slurmctld)
command -v slurmd    >/dev/null || need+=(slurmd)
command -v sbatch    >/dev/null || need+=(slurm-client)
if [ "$DBD" = 1 ]; then
  command -v slurmdbd >/dev/null || need+=(slurmdbd)
  command -v mariadbd >/dev/null || need+=(mariadb-server)
fi
if [ ${#need[@]} -gt 0 ]; then
  [ "$INSTALL" = 1 ] || die "missing packages: ${need[*]}"
  [ "$(id -u)" = 0 ] || die "missing packages (run as root to install): ${need[*]}"
  say "installing ${need[*]}"
  # keep the packages' own services from starting; ours use their own sockets and ports
  policy=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d; printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy
    trap 'rm -f "$policy"' EXIT
  fi
  apt="apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3"
  export DEBIAN_FRONTEND=noninteractive
  $apt install -y --no-install-recommends "${need[@]}" >"$W/log/apt.log" 2>&1 9>&- ||
    { $apt update >>"$W/log/apt.log" 2>&1 9>&- &&
      $apt install -y --no-install-recommends "${need[@]}" >>"$W/log/apt.log" 2>&1 9>&-; } ||
    die "apt-get failed, see $W/log/apt.log"
  [ -z "$policy" ] || { rm -f "$policy"; trap - EXIT; }
fi

# helpers
started() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }   # start time: tells a reused pid
running() { # NAME: is the process that run/NAME.pid records still there?
  local p t
  read -r p t 2>/dev/null <"$W/run/$1.pid" || return 1
  [ -n "$t" ] && [ "$(started "$p")" = "$t" ] && [ "$(sed 's/^.*) //' "/proc/$p/stat" | cut -c1)" != Z ]
}
wait_for() { # NAME COMMAND...: until the command succeeds; fail at once if NAME died
  local n=$1 end=$((SECONDS + WAIT)); shift
  until timeout 15 "$@" >/dev/null 2>&1; do
    running "$n" || die "$n died at start, see $W/log/$n.log"
    [ $SECONDS -lt $end ] || die "$n did not come up in ${WAIT}s"
    sleep 0.1
  done
  running "$n" || die "$n died at start, see $W/log/$n.log"
}
daemon() { # NAME COMMAND...: start in the foreground mode of its own, own session, pid file
  local n=$1; shift
  rm -f "$W/run/$n.own.pid"
  setsid "$@" </dev/null >>"$W/log/$n.log" 2>&1 9>&- &
  local p=$!; disown
  echo "$p $(started "$p")" >"$W/run/$n.pid"
}
print_env() {
  echo "export SLURM_CONF=$SLURM_CONF"
  say "up: $(sinfo -h -o '%P:%D nodes,%t,%c cpus,%G' | paste -sd' ')"
}
all_up() {
  local i
  running munged && running slurmctld || return 1
  [ "$DBD" = 0 ] || { running mariadbd && running slurmdbd; } || return 1
  for i in $(seq "$NODES"); do running "slurmd-node$i" || return 1; done
  [ "$(sinfo -h -N -t idle,alloc,mix,comp,resv -o %N 2>/dev/null | sort -u | wc -l)" = "$NODES" ]
}
if all_up; then print_env; exit 0; fi

# configuration
# slurmd insists on device files; links to /dev/null satisfy it and still get their own index
for i in $(seq 0 $((GPUS - 1))); do ln -sfn /dev/null "$W/dev/gpu$i"; done
gres='' gresparam='' tres=''
if [ "$GPUS" -gt 0 ]; then
  gres="Gres=gpu:$GPUS" gresparam="GresTypes=gpu" tres="AccountingStorageTRES=gres/gpu"
  files=$W/dev/gpu0; [ "$GPUS" = 1 ] || files="$W/dev/gpu[0-$((GPUS - 1))]"
  echo "NodeName=node[1-$NODES] Name=gpu File=$files Flags=nvidia_gpu_env" >"$W/etc/gres.conf"
else
  : >"$W/etc/gres.conf"
fi
acct="AccountingStorageType=accounting_storage/none"
[ "$DBD" = 0 ] || acct="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((PORT + 1))
AccountingStoragePass=$W/run/munge.socket
$tres"
# Slurm can bind only to what the host's own name resolves to, or to every address (munge
# authenticates each request either way)
bind=; case $(getent ahostsv4 "$(uname -n)" 2>/dev/null || true) in
  127.0.0.1*) bind=CommunicationParameters=NoInAddrAny,NoCtldInAddrAny;;
esac
: >"$W/etc/cgroup.conf"; : >"$W/etc/plugstack.conf"
cat >"$SLURM_CONF" <<CONF
ClusterName=mini
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=$PORT
SlurmUser=$ME
SlurmdUser=$ME
AuthType=auth/munge
CredType=cred/munge
# cred_expire: also how long a requeued job waits before it may start again (default 120)
AuthInfo=socket=$W/run/munge.socket,cred_expire=${MINISLURM_REQUEUE_WAIT:-5}
StateSaveLocation=$W/state
SlurmdSpoolDir=$W/spool/%n
SlurmctldPidFile=$W/run/slurmctld.own.pid
SlurmdPidFile=$W/run/slurmd-%n.own.pid
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
$bind
SlurmctldParameters=preempt_send_user_signal
$gresparam
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,default_queue_depth=1000
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MaxArraySize=10001
MaxJobCount=20000
MinJobAge=300
KillWait=2
CompleteWait=0
InactiveLimit=0
ReturnToService=2
SlurmdTimeout=60
SlurmctldTimeout=60
MessageTimeout=20
EpilogMsgTime=0
$acct
DefMemPerCPU=1000
$(for i in $(seq "$NODES"); do
  echo "NodeName=node$i NodeHostname=$HOST NodeAddr=127.0.0.1 Port=$((PORT + 1 + i)) CPUs=$CPUS Boards=1 SocketsPerBoard=1 CoresPerSocket=$CPUS ThreadsPerCore=1 RealMemory=$MEM $gres State=UNKNOWN"
done)
PartitionName=gpu Nodes=ALL Default=YES MaxTime=7-0 DefaultTime=60 State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=preempt Nodes=ALL MaxTime=7-0 DefaultTime=60 State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=${MINISLURM_GRACE:-5}
${MINISLURM_EXTRA:-}
CONF

# munge
if ! running munged; then
  [ -s "$W/etc/munge.key" ] || (umask 077; head -c 1024 /dev/urandom >"$W/etc/munge.key")
  rm -f "$W"/run/munge.socket*
  daemon munged munged --foreground --force --key-file="$W/etc/munge.key" \
    --socket="$W/run/munge.socket" --pid-file="$W/run/munged.own.pid" \
    --log-file="$W/log/munged.own.log" --seed-file="$W/run/munged.seed"
  wait_for munged munge -S "$W/run/munge.socket" -n
fi

# accounting
if [ "$DBD" = 1 ]; then
  if ! running mariadbd; then
    if [ ! -e "$W/db/.done" ]; then
      rm -rf "$W/db"; mkdir -m 700 "$W/db"
      mariadb-install-db --no-defaults --datadir="$W/db" --user="$ME" --skip-test-db \
        --auth-root-authentication-method=normal >"$W/log/mariadb-install.log" 2>&1 9>&- ||
        die "mariadb-install-db failed"
      touch "$W/db/.done"
    fi
    rm -f "$W/run/mysql.sock"
    # no TCP; no password: only who may enter db/run of WORKDIR reaches it
    daemon mariadbd mariadbd --no-defaults --datadir="$W/db" --user="$ME" \
      --socket="$W/run/mysql.sock" --pid-file="$W/run/mariadbd.own.pid" \
      --skip-networking --skip-grant-tables --skip-log-bin --performance-schema=OFF \
      --innodb-buffer-pool-size=128M --innodb-log-file-size=32M \
      --innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900
    wait_for mariadbd mariadb --no-defaults -S "$W/run/mysql.sock" -e 'select 1'
  fi
  if ! running slurmdbd; then
    (umask 077; cat >"$W/etc/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$W/run/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((PORT + 1))
$bind
SlurmUser=$ME
DebugLevel=info
PidFile=$W/run/slurmdbd.own.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
CONF
    )
    daemon slurmdbd env MYSQL_UNIX_PORT="$W/run/mysql.sock" SLURM_CONF="$W/etc/slurm.conf" slurmdbd -D
    wait_for slurmdbd sacctmgr -n list cluster
  fi
  [ -n "$(sacctmgr -n list cluster mini format=cluster 2>/dev/null)" ] ||
    sacctmgr -i add cluster mini >/dev/null || die "sacctmgr add cluster failed"
fi

# slurmctld, slurmd
if ! running slurmctld; then
  daemon slurmctld slurmctld -D -f "$SLURM_CONF"
  wait_for slurmctld scontrol ping
fi
for i in $(seq "$NODES"); do
  running "slurmd-node$i" && continue
  mkdir -p "$W/spool/node$i"
  daemon "slurmd-node$i" slurmd -D -N "node$i" -f "$SLURM_CONF"
done
end=$((SECONDS + WAIT))
until all_up; do
  for i in $(seq "$NODES"); do running "slurmd-node$i" || die "slurmd-node$i died, see $W/log/slurmd-node$i.log"; done
  [ $SECONDS -lt $end ] || die "the nodes did not come up in ${WAIT}s: $(sinfo -h -N -o '%N %T %E' 2>&1 | sort -u | paste -sd';')"
  sleep 0.1
done
print_env
