"""Keys with a form of their own: what providers issue in 2026, and the lines they are found in."""

from __future__ import annotations

from heldout_draw import Kind, add_lines, call_bash, escape, escape_twice, number_lines

FORMS: dict[str, tuple[str, ...]] = {
    "anthropic": (
        "sk-ant-api03-«url:93»AA", "sk-ant-oat01-«url:93»AA", "sk-ant-admin01-«url:93»AA",
    ),
    "openai": (
        "sk-proj-«url:74»T3BlbkFJ«url:74»", "sk-svcacct-«url:74»T3BlbkFJ«url:74»",
        "sk-«b62:20»T3BlbkFJ«b62:20»",
    ),
    "openrouter": ("sk-or-v1-«hex:64»",),
    "groq": ("gsk_«b62:52»",),
    "xai": ("xai-«b62:80»",),
    "perplexity": ("pplx-«b62:48»",),
    "hugging_face": ("hf_«abc:34»",),
    "replicate": ("r8_«b62:37»",),
    "deepseek": ("sk-«hex:32»",),
    "nvidia": ("nvapi-«url:64»",),
    "pinecone": ("pcsk_«b62:6»_«b62:63»",),
    "langchain": ("lsv2_pt_«hex:32»_«hex:10»", "sk-lf-«uuid»"),
    "tavily": ("tvly-dev-«b62:32»", "fc-«hex:32»"),
    "cerebras": ("csk-«an:48»", "fw_«b62:24»", "tgp_v1_«url:43»"),
    "google": ("AIza«url:35»", "AQ.Ab8RN6«url:44»"),
    "google_oauth": ("GOCSPX-«url:28»", "ya29.a0A«url:180»", "1//0«dig:1»«url:80»"),
    "aws_access": ("AKIA«b32:16»", "ASIA«b32:16»"),
    "bedrock": ("ABSK«b64:128»",),
    "github": ("ghp_«b62:36»", "gho_«b62:36»", "ghs_«b62:36»", "github_pat_«b62:22»_«b62:59»"),
    "gitlab": ("glpat-«url:20»", "glpat-«url:27».01.«an:9»", "glrt-«url:20»", "glptt-«hex:40»"),
    "atlassian": ("ATATT3xFfGF0«url:171»=«HEX:8»", "ATBB«b62:32»"),
    "slack": (
        "xoxb-«dig:12»-«dig:13»-«b62:24»", "xoxp-«dig:12»-«dig:12»-«dig:13»-«hex:32»",
        "xapp-1-A«AN:10»-«dig:13»-«hex:64»",
    ),
    "discord_bot": ("MT«b62:24».G«url:5».«url:38»",),
    "telegram_bot": ("«dig:10»:AA«url:33»",),
    "stripe": ("sk_live_51«b62:97»", "rk_live_51«b62:97»", "sk_test_51«b62:97»", "whsec_«b62:32»"),
    "sendgrid": ("SG.«url:22».«url:43»",),
    "mail_senders": ("xkeysib-«hex:64»-«b62:16»", "re_«b62:8»_«b62:24»", "«hex:32»-us«dig:2»"),
    "npm": ("npm_«b62:36»",),
    "pypi": ("pypi-AgEIcHlwaS5vcmc«url:160»",),
    "package_registries": ("rubygems_«hex:48»", "dckr_pat_«url:27»", "cio«b62:32»", "oy2«an:43»"),
    "digitalocean": ("dop_v1_«hex:64»", "doo_v1_«hex:64»"),
    "hosting": ("HRKU-AA«url:58»", "nfp_«b62:36»", "rnd_«b62:32»", "fo1_«url:43»"),
    "databases": (
        "sbp_«hex:40»", "sb_secret_«url:22»_«url:8»", "pscale_tkn_«url:43»", "napi_«an:64»",
    ),
    "databricks": ("dapi«hex:32»", "dapi«hex:32»-2"),
    "observability": (
        "glsa_«b62:32»_«hex:8»", "NRAK-«AN:27»", "sntryu_«hex:64»", "dt0c01.«AN:24».«AN:64»",
        "phx_«b62:43»",
    ),
    "office_tools": (
        "lin_api_«b62:40»", "ntn_«dig:11»«b62:35»", "pat«b62:14».«hex:64»", "figd_«url:40»",
    ),
    "shops": ("shpat_«hex:32»", "shpss_«hex:32»", "EAAAl«url:59»", "sq0csp-«url:43»"),
    "vault": ("hvs.CAES«url:90»", "hvs.«b62:24»", "hvb.AAAAAQ«url:130»"),
    "infrastructure": (
        "«b62:14».atlasv1.«url:67»", "pul-«hex:40»", "dp.pt.«b62:43»",
        "tskey-auth-k«b62:10»CNTRL-«b62:32»",
    ),
    "build_services": (
        "sqp_«hex:40»", "CCIPAT_«b62:22»_«hex:40»", "bkua_«hex:40»", "PMAK-«hex:24»-«hex:34»",
    ),
    "age_identity": ("AGE-SECRET-KEY-1«bech:58»",),
    "azure_client": ("«b62:3»8Q~«url:34»",),
    "jwt": ("«jwt»",),
}  # fmt: skip

PLACES = (
    "export «NAME»=«SECRET»",
    "«NAME»=\"«SECRET»\"",
    "  - «NAME»=«SECRET»",
    '    "«name»": "«SECRET»",',
    "«name»: '«SECRET»'",
    "const «name» = `«SECRET»`;",
    'client = Client(«name»="«SECRET»", timeout=30)',
    "> authorization: Bearer «SECRET»",
    "$env:«NAME» = '«SECRET»'",
    "set -gx «NAME» «SECRET»",
    "here you go, use this one: «SECRET» (revoke it on friday please)",
    "error: 401 Unauthorized for key «SECRET», see the dashboard",
    "$ echo $«NAME»\n«SECRET»",
    "| production | `«SECRET»` | rotated 2026-0«dig:1» |",
    "+    \"«name»\" => \"«SECRET»\",",
    "curl -s https://api.«company».com/v1/me -H 'x-api-key: «SECRET»'",
    "ENV «NAME» «SECRET»",
    "sent to https://api.«company».com/v2/list?limit=20&key=«SECRET»",
    "<add key=\"«name»\" value=\"«SECRET»\" />",
    "# old: «SECRET»",
)  # fmt: skip


def _name_keys(provider: str) -> dict[str, tuple[str, ...]]:
    upper = provider.upper()
    return {
        "NAME": (f"{upper}_API_KEY", f"{upper}_TOKEN", f"{upper}_SECRET"),
        "name": ("apiKey", "api_key", f"{provider}_token", "accessToken", f"{provider}_secret"),
    }


# Values without a form of their own: only the name in front tells that they are keys.
NAMED: dict[str, tuple[str, tuple[str, ...]]] = {
    "aws_secret": ("AWS_SECRET_ACCESS_KEY|aws_secret_access_key|SecretAccessKey", ("«b64:40»",)),
    "aws_session": (
        "AWS_SESSION_TOKEN|aws_session_token|SessionToken", ("IQoJb3JpZ2luX2Vj«b64:300»==",),
    ),
    "datadog": ("DD_API_KEY|DATADOG_APP_KEY|dd_api_key", ("«hex:32»", "«hex:40»")),
    "cloudflare": (
        "CLOUDFLARE_API_TOKEN|CF_API_TOKEN|cloudflare_api_token", ("«url:40»", "«hex:37»"),
    ),
    "mistral": ("MISTRAL_API_KEY|CO_API_KEY|COHERE_API_KEY", ("«b62:32»", "«b62:40»")),
    "azure_openai": (
        "AZURE_OPENAI_API_KEY|AZURE_OPENAI_KEY", ("«b62:52»JQQJ99«b62:26»", "«hex:32»"),
    ),
    "twilio": ("TWILIO_AUTH_TOKEN|twilio_auth_token|authToken", ("«hex:32»",)),
    "uuid_keys": ("HEROKU_API_KEY|SNYK_TOKEN|CODECOV_TOKEN|POSTMARK_SERVER_TOKEN", ("«uuid»",)),
    "vercel": (
        "VERCEL_TOKEN|EXPO_TOKEN|RAILWAY_TOKEN|BLOB_READ_WRITE_TOKEN", ("«b62:24»", "«url:40»"),
    ),
    "web_framework": (
        "SECRET_KEY|SECRET_KEY_BASE|DJANGO_SECRET_KEY|APP_SECRET|NEXTAUTH_SECRET|AUTH_SECRET",
        ("«b62:50»", "«hex:64»", "«b64:43»="),
    ),
    "signing": (
        "JWT_SECRET|SESSION_SECRET|COOKIE_SECRET|HMAC_SECRET|webhook_secret|signing_secret",
        ("«hex:64»", "«url:32»", "«Word»-«word»-«word»-«dig:4»"),
    ),
    "encryption": (
        "ENCRYPTION_KEY|MASTER_KEY|RAILS_MASTER_KEY|FERNET_KEY|DATA_ENCRYPTION_KEY",
        ("«hex:32»", "«url:43»=", "«b64:43»="),
    ),
    "oauth_client": (
        "CLIENT_SECRET|client_secret|clientSecret|OIDC_CLIENT_SECRET", ("«url:40»", "«b62:32»"),
    ),
    "refresh": ("refresh_token|access_token|REFRESH_TOKEN|id_token", ("«url:64»", "«b62:40»")),
    "home_made_names": (
        "STAGING_PASSWD|PGPASSWORD|DB_PASS|REDIS_AUTH_PASSWORD|MYSQL_ROOT_PASSWORD|LEGACY_FTP_PWD",
        ("«pw»",),
    ),
    "unusual_names": (
        "INTERNAL_SVC_CREDENTIAL|PARTNER_APIKEY|bot_tok_secret|ADMIN_PASSPHRASE|kmsPrivateKey"
        "|DEPLOY_PAT_TOKEN",
        ("«b62:28»", "«hex:40»", "«url:36»"),
    ),
}  # fmt: skip

NAMED_PLACES = (
    "«NAME»=«SECRET»",
    "export «NAME»='«SECRET»'",
    '«NAME» = "«SECRET»"',
    "«NAME»: «SECRET»",
    '  "«NAME»": "«SECRET»",',
    "      «NAME»: \"«SECRET»\"  # todo: move to the vault",
    "set «NAME»=«SECRET»",
    "$Env:«NAME»=\"«SECRET»\"",
    "set -x «NAME» «SECRET»",
    "ENV «NAME»=«SECRET»",
    "docker run --rm -e «NAME»=«SECRET» «company»/«service»:latest",
    "declare -x «NAME»=\"«SECRET»\"",
    "«NAME» := «SECRET»",
    '{\\"«NAME»\\": \\"«SECRET»\\"}',
    "process.env.«NAME» = '«SECRET»'",
    'os.environ["«NAME»"] = "«SECRET»"',
    "<«NAME»>«SECRET»</«NAME»>",
    "- name: «NAME»\n  value: «SECRET»",
    "fly secrets set «NAME»=«SECRET» -a «company»-«service»",
    'os.Setenv("«NAME»", "«SECRET»")',
)  # fmt: skip

ALL_FORMS = tuple(forms[0] for forms in FORMS.values() if forms != ("«jwt»",))
LISTING = "NODE_ENV=production\n«SERVICE_KEY|VENDOR_KEY|TOKEN»=«SECRET»\nPORT=80«dig:2»\nDEBUG=0"

KEYS: tuple[Kind, ...] = (
    *(Kind(f"key-{name}", PLACES, keys, _name_keys(name)) for name, keys in FORMS.items()),
    *(
        Kind(f"named-{name}", NAMED_PLACES, keys, {"NAME": names.split("|")})
        for name, (names, keys) in NAMED.items()
    ),
    Kind("wrapped-env-in-json", (LISTING,), ALL_FORMS, shape=escape),
    Kind("wrapped-env-in-json-twice", (LISTING,), ALL_FORMS, shape=escape_twice),
    Kind("wrapped-env-numbered", (LISTING,), ALL_FORMS, shape=number_lines),
    Kind("wrapped-env-diff", (LISTING,), ALL_FORMS, shape=add_lines),
    Kind(
        "wrapped-bash-call",
        (
            "export DB_PASSWORD=\"«SECRET»\" && ./migrate.sh «db»",
            "cat > .env <<'EOF'\nDB_HOST=«host»\nDB_PASSWORD=«SECRET»\nEOF",
            "sed -i 's/^password=.*/password=«SECRET»/' config/«service».ini",
            "echo '{\"password\": \"«SECRET»\"}' | http POST «service».internal/login",
        ),
        ("«b62:12-24»", "«Word»-«word»-«word»-«dig:2»"),
        shape=call_bash,
    ),
)  # fmt: skip
