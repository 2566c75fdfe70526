//! Options that URLs of other clients have: known by name, so that a URL copied from an application is
//! refused with what to write here instead, and never with a likely name that means something else.

/// Names of options without `-` and `_`, in lower case, and what to write instead.
const NAMES: [(&[&str], &str); 21] = [
    (
        &["retrywrites", "retryreads", "maxretries", "retryonerror", "retryontimeout"],
        "leave it out: each request goes out once, and its outcome is counted; drivers that can do otherwise \
         take `retry=driver`",
    ),
    (
        &[
            "sockettimeout",
            "sockettimeoutms",
            "connecttimeout",
            "connecttimeoutms",
            "socketconnecttimeout",
            "serverselectiontimeoutms",
            "requesttimeout",
            "readtimeout",
            "writetimeout",
            "dialtimeout",
            "timeoutms",
            "kvtimeout",
            "commandtimeout",
            "operationtimeout",
            "connectiontimeout",
        ],
        "write `timeout=2s`: it bounds a request, and an attempt to connect",
    ),
    (
        &[
            "maxpoolsize",
            "minpoolsize",
            "maxconnections",
            "poolsize",
            "maxidletimems",
            "waitqueuetimeoutms",
            "maxconnecting",
            "poolmaxsize",
            "coreconnections",
            "maxconnsperhost",
            "connectionpoolsize",
        ],
        "leave it out: `--clients` and `--pipeline` say how many connections there are",
    ),
    (
        &["appname", "clientname", "libname", "libversion", "applicationname"],
        "leave it out: kvdyno names itself",
    ),
    (
        &["ssl", "usetls", "sslenabled"],
        "write the scheme of TLS (`rediss://`, `memcacheds://`, `cassandras://`, `etcds://`, \
         `natss://`, `rest+https://`); with mongodb `tls=true`",
    ),
    (
        &[
            "tlsinsecure",
            "tlsallowinvalidcertificates",
            "tlsallowinvalidhostnames",
            "sslcertreqs",
            "sslcheckhostname",
            "insecureskipverify",
            "skipverify",
            "insecure",
        ],
        "write `tls=insecure` where the store takes it, or better `pin=` with the certificate's fingerprint",
    ),
    (
        &["pin", "fingerprint", "tlspin"],
        "a fingerprint is compared where kvdyno checks certificates itself; MongoDB's driver does that and \
         compares none: name its authority with `tlsCAFile=FILE`, or write `tls=insecure`",
    ),
    (&["sslcacerts", "sslcacertsfile", "cafile", "cacert", "tlscafile"], "write `ca=FILE`"),
    (&["sslcertfile", "certfile", "clientcert"], "write `cert=FILE`"),
    (&["sslkeyfile", "keyfile", "clientkey"], "write `key=FILE`"),
    (
        &["decoderesponses", "encoding", "uuidrepresentation", "serializer", "transcoder"],
        "leave it out: kvdyno moves bytes and checks them",
    ),
    (
        &["healthcheckinterval", "heartbeatfrequencyms", "keepalive", "socketkeepalive"],
        "leave it out: what becomes of a connection is what is measured",
    ),
    (
        &["compressors", "zlibcompressionlevel"],
        "leave it out: nothing is compressed on the way, so that sizes are what they seem",
    ),
    (
        &["authmechanism", "authmechanismproperties"],
        "leave it out: the best that the server and the driver both know is taken",
    ),
    (
        &["loadbalanced", "localthresholdms", "maxstalenessseconds", "readpreferencetags"],
        "leave it out: kvdyno measures the servers that the URL names",
    ),
    (&["localdatacenter", "localdc", "datacentre", "dc"], "write `datacenter=NAME`"),
    (
        &["consistencylevel", "serialconsistencylevel", "defaultconsistency"],
        "write `consistency=`, or `read=` and `write=` with a level each",
    ),
    (
        &["tcpnodelay", "nodelay", "binaryprotocol", "binary", "noreply", "nblock"],
        "leave it out: requests are gathered into one write, and each is answered",
    ),
    (&["database", "dbname"], "write it as the path: `…://host/NAME`"),
    (&["namespace", "set", "bucket", "keyspace"], "write it as the path: `…://host/NAME`"),
    (
        &["host", "port", "endpoints", "hosts", "servers"],
        "write servers before the path: `…://host1:port,host2:port`",
    ),
];

/// Returns what to write in place of an option of this name, if it is one of another client.
pub(super) fn advice(name: &str) -> Option<&'static str> {
    let plain: String = name.chars().filter(|c| !"-_".contains(*c)).collect();
    let plain = plain.to_ascii_lowercase();
    NAMES.iter().find(|(names, _)| names.contains(&plain.as_str())).map(|(_, advice)| *advice)
}
