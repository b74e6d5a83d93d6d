"""Words that the third corpus draws its sentences, names and paths from."""

from __future__ import annotations

__all__ = ["LISTS"]

LISTS: dict[str, tuple[str, ...]] = {
    "noun": tuple(
        """account adapter alert archive backend badge basket batch booking branch bucket budget buffer
        cache calendar cart catalog channel chart checkout cluster column comment connector consumer
        contact container cursor customer dashboard deployment device digest document driver editor
        endpoint event export fixture folder footer form gateway graph handler header image import
        index inventory invoice item job journal label ledger listener locale lock mailer menu message
        metric migration mirror module node notification order page panel parser patch payload payment
        pipeline plan plugin policy pool profile project prompt proxy query queue record region registry
        release report request response role router rule sample scanner schedule schema scope search
        segment sensor shard sheet shipment sidebar signal snapshot source span stream subscriber
        summary table tag task team template tenant theme thread ticket timer tooltip topic trace
        upload validator vendor view volume wallet warehouse watcher webhook widget window worker""".split()
    ),
    "verb": tuple(
        """add apply archive batch build bump cache check clean collect compare compute convert copy
        create debounce decode defer drop emit encode enqueue expand export fetch filter flush format
        group handle hide import index inject insert inspect join list load lock log map mark measure
        merge migrate mock move normalize notify open pack paginate parse patch pin poll prune publish
        push queue read rebuild reduce refresh rename render replace report reset resolve restore
        resume retry return route run sanitize save scan schedule select send serialize skip sort
        split store stream strip submit sync tag test throttle trace track transform trim update
        upload validate verify warm watch wrap write""".split()
    ),
    "adj": tuple(
        """active async atomic average blank broken busy cached cold common compact current daily dark
        deep default dirty distinct double empty exact fast final flaky fresh global hidden idle
        inner large last late lazy legacy light local long lost main manual missing narrow nested
        new noisy old open outer partial pending plain primary quick quiet random raw recent remote
        safe shallow shared short silent simple slow small sorted stable stale static strict tall
        temporary thin tiny total unique unused upper urgent valid visible wide""".split()
    ),
    "first": tuple(
        """Amira Anna Arjun Bea Carlos Chen Dana Elif Emil Fatou Greta Hugo Ines Ivan Jonas Kaito Lena
        Luca Maja Mateo Mia Nadia Noah Olga Omar Paula Priya Rafael Rosa Sami Sofia Tariq Tomas Uma
        Vera Wanda Yuki Zeno""".split()
    ),
    "last": tuple(
        """Almeida Becker Castro Demir Eriksen Fischer Garcia Haddad Ivanova Jansen Kowalski Lindholm
        Moreau Nakamura Okafor Petrov Quint Rossi Sharma Tanaka Ueda Varga Weber Yilmaz Zhang""".split()
    ),
    "svc": tuple(
        """acme atlas beacon billing breeze cobalt courier delta ember fable harbor helix ingest juniper
        kestrel lagoon ledgerly lumen mercury nimbus orbit osprey parcel pollux quarry radar ripple
        saffron sonar tundra vela wharf zephyr""".split()
    ),
    "tld": ("com", "io", "dev", "net", "org", "de", "co.uk", "internal", "local", "app"),
    "stem": tuple(
        """anchor apple autumn badger bamboo basil bishop bottle bridge bronze butter candle canyon
        carbon castle cherry cinder clover cobra comet copper coral cotton crater dragon eagle
        falcon feather forest galaxy garden ginger granite guitar hammer hazel hunter island ivory
        jacket jaguar jungle kettle ladder lemon lizard magnet maple marble meadow mirror monkey
        mountain mustang nickel ocean orange oyster panda parrot pepper phoenix pirate planet
        pumpkin puzzle rabbit ranger raven ribbon river rocket saddle sailor salmon shadow silver
        spider spring summer sunset tiger thunder timber tractor turtle velvet violet walnut winter
        wizard yellow zebra""".split()
    ),
    "ext": ("py", "ts", "tsx", "js", "go", "rs", "java", "rb", "kt", "cs", "php", "cpp", "swift"),
    "pkg": tuple(
        """@babel/core @types/node aiohttp anyhow axios boto3 chalk charset-normalizer click clap cobra
        date-fns django esbuild eslint express fastapi flask gin hyper idna jest jsonschema lodash
        numpy pandas pillow prettier prisma pydantic pytest react redis regex requests rollup
        serde semver sqlalchemy tailwindcss tokio tqdm typescript urllib3 uvicorn vite vitest
        webpack yaml zod""".split()
    ),
    "branch": tuple(
        """main develop master release/next feature/sidebar fix/login-redirect chore/deps hotfix/null
        feature/token-refresh fix/password-reset-copy refactor/auth spike/cache docs/readme""".split()
    ),
    "db": tuple(
        "analytics app audit billing catalog crm events forum ledger main orders shop".split()
    ),
    "user": tuple(
        """admin alice api app backup bob ci deploy dev etl grafana jenkins kiran maria ops postgres
        reader replicator reporting root sam service svc_app svc-web ubuntu writer""".split()
    ),
    "cloud": ("us-east-1", "eu-west-1", "eu-central-1", "ap-south-1", "us-west-2", "westeurope"),
    "month": tuple("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()),
    "level": ("DEBUG", "INFO", "WARN", "ERROR", "info", "debug", "warning", "TRACE"),
    "tool": ("Bash", "Read", "Edit", "Grep", "Write", "Glob", "WebFetch", "TodoWrite"),
    "model": ("claude-opus-4-5", "gpt-5-mini", "gemini-2.5-pro", "claude-sonnet-4-5", "o4-mini"),
}
