//! The lines of the shell that make each error happen, and the errors that no line makes.

/// Files that the lines name.
pub const FILES: &[(&str, &str)] = &[
    ("syntax.toml", "name = [\n"),
    ("key.toml", "name = \"k\"\nrecords = 10\nvalu = \"40B\"\n"),
    (
        "word.toml",
        "name = \"w\"\nrecords = 10\nkeys = \"zipfain\"\n[[phase]]\nname = \"p\"\nmix = \"get\"\nrequests = 10\n",
    ),
    (
        "type.toml",
        "name = \"t\"\nrecords = true\n[[phase]]\nname = \"p\"\nmix = \"get\"\nrequests = 10\n",
    ),
    (
        "quantity.toml",
        "name = \"q\"\nrecords = 10\nvalue = \"3X\"\n[[phase]]\nname = \"p\"\nmix = \"get\"\nrequests = 10\n",
    ),
    ("missing.toml", "records = 10\n[[phase]]\nname = \"p\"\nmix = \"get\"\nrequests = 10\n"),
    (
        "mix.toml",
        "name = \"m\"\nrecords = 10\n[[phase]]\nname = \"p\"\nmix = \"get=50\"\nrequests = 10\n",
    ),
    (
        "range.toml",
        "name = \"r\"\nrecords = 10\n[[phase]]\nname = \"p\"\nmix = \"get\"\nclients = 0\nrequests = 10\n",
    ),
    (
        "conflict.toml",
        "name = \"c\"\nrecords = 10\n[[phase]]\nname = \"p\"\nmix = \"get\"\nrequests = 10\n[[phase]]\nname = \"p\"\nmix = \"get\"\nrequests = 10\n",
    ),
    (
        "short.toml",
        "name = \"s\"\nrecords = \"200M\"\nkey = { form = \"decimal\", length = 8 }\nstores = [\"null:\"]\nverify = false\n[[phase]]\nname = \"p\"\nmix = \"get\"\nrequests = 10\n",
    ),
    ("back.csv", "0,100\n2,100\n1,100\n"),
    (
        "load.toml",
        "url = \"redis://127.0.0.1:1\"\n[[load]]\nname = \"one\"\nstart = \"true\"\n[[node]]\nname = \"n\"\naddress = \"127.0.0.1:1\"\n",
    ),
    (
        "bare.toml",
        "url = \"redis://127.0.0.1:1\"\n[[node]]\nname = \"n\"\naddress = \"127.0.0.1:1\"\n[commands]\nkill = \"true\"\n",
    ),
    (
        "survives.toml",
        "name = \"w\"\nrecords = 200\noperations = [\"get\"]\nsurvives-killed-node = true\n",
    ),
    ("winnow.toml", "name = \"w\"\nrecords = 200\noperations = [\"get\"]\n"),
    ("redis-server", "#!/bin/sh\necho no such luck; exit 3\n"),
    (
        "other.toml",
        "name = \"o\"\nrecords = 100\n[[phase]]\nname = \"load\"\nload = true\n[[phase]]\nname = \"other\"\nmix = \"get\"\nrequests = 100\n",
    ),
    (
        "primary.toml",
        "name = \"p\"\nrecords = 100\n[[phase]]\nname = \"cut\"\nmix = \"get\"\nduration = \"5s\"\n[[phase.fault]]\nat = \"1s\"\ndo = \"kill\"\nnode = \"primary\"\n",
    ),
    (
        "full.toml",
        "name = \"f\"\nrecords = 100\n[[phase]]\nname = \"cut\"\nmix = \"get\"\nduration = \"5s\"\n[[phase.fault]]\nat = \"1s\"\ndo = \"disk-full\"\nnode = \"any\"\n",
    ),
    (
        "network.toml",
        "name = \"n\"\nrecords = 100\n[[phase]]\nname = \"cut\"\nmix = \"get\"\nduration = \"5s\"\n[[phase.fault]]\nat = \"1s\"\ndo = \"partition\"\nnode = \"any\"\n",
    ),
];

/// Commands that make the results that the lines name.
pub const BEFORE: &str = "\
    mkdir tmp empty broken old counts coded big foreign planless secret bin; mkdir -p taken/events.jsonl
    export TMPDIR=$PWD/tmp
    R='run --records 200 --requests 400 --clients 1 --quiet'
    kvdyno $R --store map: --out map
    kvdyno $R --store lmdb:db --out lmdb
    kvdyno $R --store map: --store lmdb:both --out both
    kvdyno run other.toml --store map: --quiet --out other
    echo '{' > broken/result.json
    sed 's/\"schema_version\": 1/\"schema_version\": 99/' map/result.json > old/result.json
    sed 's/\"judged\": [0-9]*/\"judged\": 9007199254740993/' map/result.json > counts/result.json
    sed 's/\"HISTF[^\"]*/\"HISTFAAAA/' map/result.json > coded/result.json
    sed 's/\"config\"/\"conducted\"/; s/\"run\",/\"stores\",/; s/\"--.*\",//' map/result.json > foreign/result.json
    sed 's/\"phases\": \\[/\"stages\": [/' map/result.json > planless/result.json
    sed 's/\"url\": \"map:\"/\"url\": \"redis:\\/\\/:***@h\"/' map/result.json > secret/result.json
    truncate --size 300M big/result.json
    mkdir trials; cp -r map trials/trial-1; echo '{}' > trials/trials.json
    chmod +x redis-server; mv redis-server bin";

/// Exit code and line of each case.
pub const LINES: &[(i32, &str)] = &[
    (64, "kvdyno run --records lots --store map:"),
    (64, "kvdyno run --records 1k --value 3X --store map:"),
    (64, "kvdyno run --records 1k --duration 5 --store map:"),
    (64, "kvdyno run --records 1k --duration 0.5ns --store map:"),
    (64, "kvdyno run --records 1k --duration 99999999999999h --store map:"),
    (64, "kvdyno testbed fault lossy --loss 200%"),
    (64, "kvdyno run syntax.toml"),
    (64, "kvdyno run key.toml"),
    (64, "kvdyno run word.toml"),
    (64, "kvdyno run type.toml"),
    (64, "kvdyno run quantity.toml"),
    (64, "kvdyno run missing.toml"),
    (64, "kvdyno run mix.toml"),
    (64, "kvdyno run range.toml"),
    (64, "kvdyno run conflict.toml"),
    (64, "kvdyno run nowhere.toml"),
    (64, "kvdyno run short.toml"),
    (64, "kvdyno run quick --rate back.csv"),
    (64, "kvdyno run quick --rate 'ramp up'"),
    (64, "kvdyno run quick --rate 0/s"),
    (64, "kvdyno run quick -r 1000000"),
    (64, "kvdyno run quick --scale 0"),
    (64, "kvdyno run churn --mix get --store map:"),
    (64, "kvdyno run failover"),
    (64, "kvdyno run failover --store map:"),
    (64, "kvdyno run quick --store map: --trials 2 --data reuse"),
    (64, "kvdyno run --records 1k --store map: --value 4B"),
    (64, "kvdyno run --records 1T --store map: --requests 1"),
    (69, "kvdyno run --records 100 --store 'cache(map:,null:)' --mix scan=100"),
    (64, "kvdyno run --records 1 --store map: --agents local:2 --reads anywhere --mix update=100"),
    (64, "kvdyno run --records 10 --store map: --out map"),
    (64, "kvdyno run --records 10 --store map: --out key.toml/x"),
    (64, "kvdyno run --records 200 --store lmdb:db --requests 10"),
    (69, "kvdyno run --records 200 --store 'sim:?refuse=1' --requests 10"),
    (64, "kvdyno check --store redi://h"),
    (64, "kvdyno check --store redis://h?timeuot=1"),
    (69, "kvdyno check --store lmdb:key.toml/x"),
    (69, "kvdyno check --store redis://127.0.0.1:1"),
    (69, "KVDYNO_ROCKSDB=/nowhere/librocksdb.so kvdyno check --store rocksdb:"),
    (69, "KVDYNO_ROCKSDB=libm.so.6 kvdyno check --store rocksdb:"),
    (64, "kvdyno check --for ycsb-a"),
    (64, "kvdyno cost --servers n1-standard-8"),
    (64, "kvdyno cost --servers no-such-server=1"),
    (64, "kvdyno cost --servers n1-standard-8=2 --hours-month 9999"),
    (64, "kvdyno cost --prices nowhere.toml"),
    (64, "kvdyno cost --prices syntax.toml"),
    (64, "kvdyno cost map"),
    (64, "kvdyno cost map --prices key.toml"),
    (64, "kvdyno compare empty"),
    (64, "kvdyno compare map"),
    (64, "kvdyno compare map lmdb"),
    (64, "kvdyno compare map lmdb --allow-unequal --fail-on 'p99(scan) > 1ms'"),
    (64, "kvdyno compare map lmdb --allow-unequal --fail-on 'last_error > 1ms'"),
    (64, "kvdyno compare map lmdb --allow-unequal --fail-on 'p99'"),
    (70, "kvdyno compare map lmdb --allow-unequal --markdown nowhere/x.md"),
    (64, "kvdyno compare map other --allow-unequal"),
    (64, "kvdyno compare both map --allow-unequal"),
    (64, "kvdyno compare map broken"),
    (64, "kvdyno compare map old"),
    (64, "kvdyno report nowhere"),
    (64, "kvdyno report big"),
    (64, "kvdyno report key.toml"),
    (64, "kvdyno report trials/trials.json"),
    (64, "kvdyno report counts"),
    (64, "kvdyno report coded"),
    (70, "kvdyno report map -o nowhere/x.html"),
    (70, "kvdyno report map -o nowhere/x.md"),
    (64, "kvdyno report map lmdb -o x.html"),
    (64, "kvdyno report map -o x.pdf"),
    (64, "kvdyno board empty -o site"),
    (70, "kvdyno board map -o key.toml/site"),
    (64, "kvdyno export map --as parquet"),
    (64, "kvdyno export map --as bencher --table intervals"),
    (64, "kvdyno export map --as csv --include-invalid"),
    (64, "(ulimit -v 4000000; kvdyno run --store map: --records 600M --mix get=100 --requests 10)"),
    (64, "cp map/result.json alone.json; kvdyno export alone.json --as csv --table intervals"),
    (64, "kvdyno run --records 100 --store map: --console --console-on nowhere"),
    (70, "kvdyno export map --as csv -o nowhere/x.csv"),
    (64, "kvdyno man /dev/null/x"),
    (64, "kvdyno rerun trials"),
    (64, "kvdyno rerun foreign"),
    (64, "kvdyno rerun secret"),
    (64, "kvdyno rerun planless"),
    (64, "kvdyno run --records 10 --store map: --events --out taken"),
    (64, "kvdyno new key.toml"),
    (64, "kvdyno new nowhere/x.toml"),
    (64, "kvdyno winnow nowhere.toml"),
    (64, "kvdyno winnow key.toml"),
    (64, "kvdyno winnow winnow.toml"),
    (64, "kvdyno winnow survives.toml --testbed bare.toml"),
    (64, "kvdyno run --records 100 --store map: --agents local:2"),
    (64, "kvdyno run --records 100 --store map: --agents local:999999"),
    (64, "kvdyno run --records 100 --store map: --agents some"),
    (64, "kvdyno run --records 100 --store map: --agents local:2 --listen 127.0.0.1:0"),
    (64, "kvdyno run --records 100 --store map: --agents 2 --conductor h:1"),
    (64, "kvdyno run --records 100 --store map: --agents key.toml"),
    (64, "kvdyno run --records 100 --store map: --agents bare.toml"),
    (64, "kvdyno run --records 100 --store map: --agents load.toml"),
    (64, "kvdyno run --records 100 --store redis://127.0.0.1:1 --agents 2 --listen 192.0.2.1:1"),
    (
        64,
        "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=99999 SLURM_STEP_NUM_TASKS=99999 SLURM_NODELIST=h SLURM_STEP_NODELIST=h KVDYNO_TOKEN=0123456789abcdef kvdyno run --records 100 --store redis://h --agents auto --wait 1s",
    ),
    (
        64,
        "KVDYNO_TOKEN=short kvdyno run --records 100 --store redis://h --agents 2 --listen 127.0.0.1:0",
    ),
    (
        64,
        "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=99999 SLURM_STEP_NUM_TASKS=99999 SLURM_NODELIST=h SLURM_STEP_NODELIST=h kvdyno run --records 100 --store redis://h --agents auto --wait 1s",
    ),
    (64, "env -u KVDYNO_TOKEN kvdyno agent --conductor 127.0.0.1:1"),
    (
        69,
        "KVDYNO_TOKEN=0123456789abcdef0123456789abcdef kvdyno agent --conductor 127.0.0.1:1 --wait 1s",
    ),
    (64, "kvdyno run --records 100 --store map: --metrics nowhere:x"),
    (64, "kvdyno run --records 100 --store map: --metrics 192.0.2.1:9464"),
    (64, "KVDYNO_TOKEN=$(printf '\\377%032d') kvdyno agent --conductor 127.0.0.1:1"),
    (64, "kvdyno run --records 100 --store map: --otlp nowhere"),
    (64, "kvdyno run grow --testbed cassandra:3 --dry-run"),
    (64, "kvdyno testbed up nowhere"),
    (64, "kvdyno testbed up 'redis?x=1'"),
    (69, "PATH=$PWD/empty $(which kvdyno) testbed up redis"),
    (69, "PATH=$PWD/bin:$PATH kvdyno testbed up redis"),
    (69, "TMPDIR=$PWD/key.toml kvdyno testbed up sim"),
    (64, "kvdyno testbed install nowhere"),
    (64, "kvdyno testbed down nowhere"),
    (64, "kvdyno testbed fault kill"),
    (64, "kvdyno testbed fault kill --testbed bare.toml"),
    (64, "kvdyno run power-cut --testbed redis"),
    (64, "kvdyno run power-cut --testbed 'redis?disk=64MiB'"),
    (64, "kvdyno run network.toml --testbed 'redis?network=host'"),
    (64, "kvdyno run primary.toml --testbed memcached:3"),
    (64, "kvdyno run primary.toml --testbed bare.toml"),
    (
        64,
        "script --quiet --return --command 'kvdyno run primary.toml --testbed bare.toml' /dev/null </dev/null >said; tr -d '\\r' <said | sed 's/.*N. //' >&2; exit 64",
    ),
    (64, "kvdyno run full.toml --testbed redis"),
    (69, "PATH=$PWD/empty $(which kvdyno) testbed install redis"),
    (64, "kvdyno run grow --testbed memcached:3"),
    (64, "kvdyno testbed up sim --detach >/dev/null 2>&1; kvdyno testbed fault pause"),
    (64, "kvdyno testbed up sim --detach >/dev/null 2>&1; kvdyno testbed fault pause 1"),
    (64, "kvdyno testbed down"),
    (64, "kvdyno testbed fault pause 1 --testbed nowhere"),
];

/// Texts that no line here makes: the test that makes them, or why nothing can, and how they begin.
pub const ELSEWHERE: &[(&str, &[&str])] = &[
    (
        "Only of a machine without the library, which tests have (the tests of stores/src/rocksdb/library.rs).",
        &["this machine has no librocksdb"],
    ),
    (
        "Only of a network namespace whose loopback is down (cli/heartbeats).",
        &["agents of this machine cannot reach"],
    ),
    (
        "Findings about reads: in a result, never the end of a command (verdicts_data and core's tests of stamps).",
        &[
            "no stamp in the",
            "{found} bytes read, but",
            "checksum over the",
            "the value belongs to dataset",
            "the value belongs to record",
            "the value belongs to field",
            "the value was fabricated",
            "the {length} bytes read do not divide",
        ],
    ),
    (
        "Only of a build without the feature, which this one has, or of the library (report's tests of Parquet).",
        &["this kvdyno was built without Parquet", "the Parquet file cannot be made"],
    ),
    (
        "Answers to who steers a run, not of the command (cli/steering and core's tests of steering).",
        &[
            "client group {0} is not running",
            "the rate must be above 0",
            "the arrivals of the group are closed",
            "the phase is over before",
            "at this rate the phase needs",
            "later phases need",
            "kvdyno itself sets the rate",
            "the phase is over",
            "no phase is running",
            "faults are possible only on a testbed",
            "there is no fault to repair",
            "the last action is still running",
            "too many orders",
        ],
    ),
    (
        "Plans that files and options refuse before, in their own words; a caller of core meets these (core/workload's tests).",
        &[
            "{what} is {value}; it must be",
            "{what} runs from",
            "{what} is a weighted list",
            "the parts of the mix sum",
            "the mix names",
            "keys of {length} bytes",
            "{what} reach to",
            "part {index} of",
        ],
    ),
    (
        "Notes in a result, which goes on (report's and core's own tests).",
        &[
            "a fit of three coefficients",
            "processor time and memory are sampled",
            "cannot read {}: {source}; mount /proc",
            "fio is not installed",
            "the store has no folder",
            "fio could not measure",
            "promise broken",
        ],
    ),
    (
        "Of recorded events that are folded again, which no command does (report/events).",
        &[
            "events of format",
            "{what} comes before the run",
            "cannot read the events",
            "line {line} of the events",
            "there are no events",
        ],
    ),
    (
        "Agents and their conductor (cli/agents, cli/engines, and the fleet's own tests).",
        &[
            "the conductor cancelled the phase",
            "the store holds only a part",
            "the conductor {conductor} refused this agent",
            "lost the connection to the conductor",
            "{} after {} s; read the agents' messages",
            "an agent ended while it started",
            "the conductor's plan cannot be read",
            "a simulated agent was not taken",
            "KVDYNO_TOKEN is not set: set it",
        ],
    ),
    (
        "Servers, real ones or slow ones (cli/testbeds, cli/servers, cassandra).",
        &[
            "the testbed has ended",
            "{}: {count} of the keys",
            "{}: kvdyno could not read {failed}",
            "a record with a field",
            "{node}: not ready after",
            "interrupted while the testbed",
        ],
    ),
    (
        "A system that refuses what it always grants, or a bug of kvdyno: their words only are tested (exit/texts).",
        &[
            "the system refused",
            "a worker thread panicked",
            "the console cannot be served",
            "a run left no result",
            "an agent was not started",
            "cannot start an agent",
            "the conductor has stopped listening",
            "the system gives no random bytes",
            "a key without its public half",
            "the page would have",
        ],
    ),
];
