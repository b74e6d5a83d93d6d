"""The project's own corpus of redaction: made-up secrets in lines as people and tools write them.

Every secret is drawn by lot from a seed, in the form its provider gives it, and put into a line
of code, configuration, shell, log, JSON or talk. The benign lines are what is most easily taken
for a secret.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable, Iterator

from redaction_families import BENIGN_FAMILIES, FAMILIES, filled

__all__ = ["benign", "secrets"]

PER_KIND = 20

Chance = random.Random
Made = Callable[[Chance], str]

LOWER = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
UPPER = LOWER.upper()
ALNUM = LOWER + UPPER + DIGITS
URL = ALNUM + "_-"
HEX = DIGITS + "abcdef"
BASE64 = ALNUM + "+/"


def draw(chance: Chance, letters: str, count: int) -> str:
    """Return so many letters, drawn by lot."""
    return "".join(chance.choices(letters, k=count))


def form(*pieces: str | tuple[str, int]) -> Made:
    """Return a maker of keys from fixed pieces and (letters, count) pairs."""
    return lambda chance: "".join(
        piece if isinstance(piece, str) else draw(chance, *piece) for piece in pieces
    )


def encoded(chance: Chance, tree: object) -> str:
    """Return a tree as a segment of a JWT."""
    del chance
    return base64.urlsafe_b64encode(json.dumps(tree).encode()).decode().rstrip("=")


def jwt(chance: Chance) -> str:
    """Return a signed JWT."""
    head = encoded(chance, {"alg": "HS256", "typ": "JWT"})
    body = encoded(chance, {"sub": draw(chance, DIGITS, 10), "iat": chance.randrange(10**9)})
    return f"{head}.{body}.{draw(chance, URL, 43)}"


def password(chance: Chance) -> str:
    """Return a password as people choose them, or as a generator does."""
    words = ("Tiger", "sunset", "Maple", "rocket", "Blue", "winter", "Falcon", "pixel", "harbour")
    style = chance.randrange(4)
    if style == 0:
        return f"{chance.choice(words)}{chance.choice(words)}{chance.randrange(10, 9999)}"
    if style == 1:
        return f"{chance.choice(words)}{chance.choice('!#%^*+')}{chance.randrange(10, 999)}"
    if style == 2:
        return draw(chance, ALNUM, 10) + str(chance.randrange(10)) + draw(chance, ALNUM, 3)
    return draw(chance, ALNUM, 6) + chance.choice("!#%*+=~") + draw(chance, ALNUM + "!#%*", 8) + "7"


PROVIDERS: dict[str, Made] = {
    "openai": form("sk-", (ALNUM, 20), "T3BlbkFJ", (ALNUM, 20)),
    "openai-project": form("sk-proj-", (URL, 74), "T3BlbkFJ", (URL, 74)),
    "anthropic": form("sk-ant-api03-", (URL, 93), "AA"),
    "anthropic-oauth": form("sk-ant-oat01-", (URL, 95)),
    "google-api": form("AIzaSy", (URL, 33)),
    "google-access": form("ya29.a0", (URL, 120)),
    "google-client": form("GOCSPX-", (URL, 28)),
    "google-refresh": form("1//0g", (URL, 60)),
    "aws-id": form("AKIA", (UPPER + "234567", 16)),
    "aws-session-id": form("ASIA", (UPPER + "234567", 16)),
    "github-classic": form("ghp_", (ALNUM, 36)),
    "github-app": form("ghs_", (ALNUM, 36)),
    "github-oauth": form("gho_", (ALNUM, 36)),
    "github-fine": form("github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "gitlab": form("glpat-", (URL, 20)),
    "slack-bot": form("xoxb-", (DIGITS, 12), "-", (DIGITS, 13), "-", (ALNUM, 24)),
    "slack-app": form("xapp-1-A", (UPPER, 10), "-", (DIGITS, 13), "-", (HEX, 64)),
    "stripe-live": form("sk_live_", (ALNUM, 24)),
    "stripe-restricted": form("rk_live_", (ALNUM, 99)),
    "stripe-hook": form("whsec_", (ALNUM, 32)),
    "twilio-key": form("SK", (HEX, 32)),
    "sendgrid": form("SG.", (URL, 22), ".", (URL, 43)),
    "npm": form("npm_", (ALNUM, 36)),
    "pypi": form("pypi-AgEIcHlwaS5vcmc", (URL, 150)),
    "hugging-face": form("hf_", (LOWER + UPPER, 34)),
    "digitalocean": form("dop_v1_", (HEX, 64)),
    "discord": form("M", (ALNUM, 23), ".", (URL, 6), ".", (URL, 38)),
    "telegram": form("7", (DIGITS, 9), ":AA", (URL, 33)),
    "mailgun": form("key-", (HEX, 32)),
    "shopify": form("shpat_", (HEX, 32)),
    "square": form("sq0atp-", (URL, 22)),
    "databricks": form("dapi", (HEX, 32)),
    "vault": form("hvs.", (URL, 90)),
    "docker": form("dckr_pat_", (URL, 27)),
    "linear": form("lin_api_", (ALNUM, 40)),
    "notion": form("ntn_", (DIGITS, 11), (ALNUM, 35)),
    "notion-old": form("secret_", (ALNUM, 43)),
    "supabase": form("sbp_", (HEX, 40)),
    "new-relic": form("NRAK-", (UPPER + DIGITS, 27)),
    "airtable": form("pat", (ALNUM, 14), ".", (HEX, 64)),
    "atlassian": form("ATATT3xFfGF0", (URL, 170), "=", ("ABCDEF0123456789", 8)),
    "fly": form("fm2_lJPECAAAAAAA", (BASE64, 100)),
    "netlify": form("nfp_", (ALNUM, 36)),
    "groq": form("gsk_", (ALNUM, 52)),
    "xai": form("xai-", (ALNUM, 80)),
    "openrouter": form("sk-or-v1-", (HEX, 64)),
    "perplexity": form("pplx-", (ALNUM, 48)),
    "replicate": form("r8_", (ALNUM, 37)),
    "terraform": form((ALNUM, 14), ".atlasv1.", (URL, 67)),
    "doppler": form("dp.pt.", (ALNUM, 43)),
    "age": form("AGE-SECRET-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    "sentry": form("sntrys_eyJpYXQiOjE3", (ALNUM, 60)),
    "jwt": jwt,
}
"""Keys that are known by their form."""

BY_NAME: dict[str, tuple[tuple[str, ...], Made]] = {
    "aws-secret": (("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key"), form((BASE64, 40))),
    "aws-session": (("AWS_SESSION_TOKEN",), form("IQoJb3JpZ2luX2Vj", (BASE64, 200))),
    "twilio-token": (("TWILIO_AUTH_TOKEN", "twilioAuthToken"), form((HEX, 32))),
    "heroku": (("HEROKU_API_KEY",), lambda chance: str(uuid.UUID(int=chance.getrandbits(128)))),
    "datadog": (("DD_API_KEY", "DATADOG_APP_KEY"), form((HEX, 32))),
    "cloudflare": (("CLOUDFLARE_API_TOKEN", "CF_API_TOKEN"), form((URL, 40))),
    "mistral": (("MISTRAL_API_KEY", "mistral_api_key"), form((ALNUM, 32))),
    "vercel": (("VERCEL_TOKEN",), form((ALNUM, 24))),
    "cohere": (("COHERE_API_KEY", "CO_API_KEY"), form((ALNUM, 40))),
    "azure-openai": (("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_KEY"), form((HEX, 32))),
    "django": (("SECRET_KEY", "DJANGO_SECRET_KEY"), form((ALNUM + "!@#%^*(-_=+)", 50), "a1")),
    "database-password": (("DB_PASSWORD", "POSTGRES_PASSWORD", "dbPassword", "PGPASSWORD"), password),
    "mail-password": (("SMTP_PASS", "MAIL_PASSWORD", "email_password"), password),
    "client-secret": (("CLIENT_SECRET", "clientSecret", "oauth_client_secret"), form((URL, 32))),
    "signing-key": (("JWT_SECRET", "SESSION_SECRET", "NEXTAUTH_SECRET"), form((BASE64, 43), "=")),
    "credential": (("SERVICE_CREDENTIAL", "registry_credentials"), form((ALNUM, 28))),
}  # fmt: skip
"""Values that only their name gives away."""

AROUND = (
    "{s}", "key = '{s}'", 'const client = new Client("{s}");', "use {s} for the staging account",
    "curl -H 'Authorization: Bearer {s}' https://api.example.com/v1/me", '{{"apiKey": "{s}"}}',
    '{{\\"token\\": \\"{s}\\"}}', "export TOKEN={s}", "2026-03-01T10:00:00Z WARN auth failed for {s}",
    "Line 1\\n{s}\\nLine 3", "    token: {s}", "docker run -e API_TOKEN={s} app:latest", "[{s}]",
    "https://api.example.com/v1/items?access_token={s}&page=2", "tool --api-key {s} --verbose",
    "+  apiKey: '{s}',", "     12→TOKEN={s}", "here is the key: {s}, keep it safe", "| prod | {s} |",
    "$env:TOKEN = \"{s}\"", "x-api-key: {s}", "\u001b[32m{s}\u001b[0m", "git clone https://{s}@github.com/a/b.git",
)  # fmt: skip
ASSIGNED = (
    "{n}={s}", "export {n}={s}", 'export {n}="{s}"', "{n}: {s}", '{n}: "{s}"', '"{n}": "{s}",',
    '{{"{n}": "{s}", "region": "eu"}}', '{{\\"{n}\\": \\"{s}\\"}}', '{n} = "{s}"', "{n} = '{s}'",
    "DEBUG=1\\n{n}={s}\\nPORT=80", "docker run -e {n}={s} -p 80:80 app", '$env:{n} = "{s}"',
    'os.environ["{n}"] = "{s}"', "process.env.{n} = '{s}';", "ENV {n} {s}", "ENV {n}={s}",
    'setx {n} "{s}"', "set {n}={s}", "     7→{n}={s}", "+{n}={s}", "heroku config:set {n}={s}",
    "  - name: {n}\n    value: \"{s}\"", "{{name: '{n}', value: '{s}'}}", "- {n}={s}",
    "{n}={s} python manage.py migrate", "the {n} is {s}", "`{n}={s}`", "{n} => '{s}'",
    "kubectl create secret generic x --from-literal={n}={s}", "<{n}>{s}</{n}>", "--set env.{n}={s}",
)  # fmt: skip


def pem(chance: Chance, label: str, *, whole: bool = True) -> tuple[str, str]:
    """Return a private key in PEM and a line of it."""
    lines = [draw(chance, BASE64, 64) for _ in range(12)]
    text = "\n".join([f"-----BEGIN {label}-----", *lines, draw(chance, BASE64, 30) + "=="])
    return (f"{text}\n-----END {label}-----" if whole else text), lines[7]


def _shown(chance: Chance, text: str) -> str:
    """Return a text of several lines as a file, in JSON, in an assignment or with line numbers."""
    style = chance.randrange(4)
    if style == 0:
        return text
    if style == 1:
        return json.dumps({"private_key": text, "client_email": "a@b.iam.example.com"})
    if style == 2:
        return 'KEY="' + text.replace("\n", "\\n") + '"'
    return "\n".join(f"{n:>6}→{line}" for n, line in enumerate(text.split("\n"), 1))


Placed = Callable[[Chance], tuple[str, str]]


def _pem_kind(label: str, *, whole: bool = True) -> Placed:
    def make(chance: Chance) -> tuple[str, str]:
        text, line = pem(chance, label, whole=whole)
        return _shown(chance, text), line

    return make


def _in(made: Made, *templates: str) -> Placed:
    def make(chance: Chance) -> tuple[str, str]:
        secret = made(chance)
        return chance.choice(templates).replace("{s}", secret), secret

    return make


def _basic(chance: Chance) -> tuple[str, str]:
    secret = base64.b64encode(f"admin:{password(chance)}".encode()).decode()
    line = chance.choice((f"Authorization: Basic {secret}", f'"auth": "{secret}"',
                          f"-H 'authorization: basic {secret}'"))  # fmt: skip
    return line, secret


PLACES: dict[str, Placed] = {
    "pem-rsa": _pem_kind("RSA PRIVATE KEY"),
    "pem-pkcs8": _pem_kind("PRIVATE KEY"),
    "pem-openssh": _pem_kind("OPENSSH PRIVATE KEY"),
    "pem-pgp": _pem_kind("PGP PRIVATE KEY BLOCK"),
    "pem-cut-off": _pem_kind("EC PRIVATE KEY", whole=False),
    "basic-auth": _basic,
    "url-postgres": _in(password, "postgres://app:{s}@db.internal:5432/app", "DATABASE_URL=postgresql+psycopg://svc:{s}@10.0.0.5/main?sslmode=require"),
    "url-mysql": _in(password, "mysql://root:{s}@127.0.0.1:3306/shop", '"dsn": "mysql://shop:{s}@db/shop"'),
    "url-mongo": _in(password, "mongodb+srv://api:{s}@cluster0.ab1cd.mongodb.net/prod", "MONGO_URI=mongodb://u1:{s}@a,b,c/db"),
    "url-redis": _in(form((ALNUM, 24)), "redis://:{s}@cache:6379/0", "rediss://default:{s}@eu1.example.io:6380"),
    "url-amqp": _in(password, "amqp://worker:{s}@mq:5672/%2f", "broker_url = 'amqps://w:{s}@mq.example.com/v'"),
    "url-https": _in(password, "git remote set-url origin https://bot:{s}@git.example.com/a/b.git", "https://admin:{s}@grafana.example.com/api"),
    "jdbc": _in(password, "jdbc:postgresql://db:5432/app?user=app&password={s}", "jdbc:sqlserver://h;databaseName=d;user=sa;password={s};"),
    "odbc": _in(password, "Driver={ODBC Driver 18};Server=tcp:h;Uid=sa;Pwd={s};Encrypt=yes", "Server=h;Database=d;User Id=sa;Password={s};"),
    "azure-storage": _in(form((BASE64, 86), "=="), "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={s};EndpointSuffix=core.windows.net", "AZURE_STORAGE_KEY={s}"),
    "azure-sas": _in(form((ALNUM, 40), "%2B", "%3D"), "https://a.blob.core.windows.net/c/f?sv=2024-11-04&se=2026-01-01&sr=b&sp=r&sig={s}", '"url": "https://x.file.core.windows.net/s?sp=rl&sig={s}"'),
    "azure-bus": _in(form((BASE64, 43), "="), "Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={s}"),
    "slack-webhook": _in(form("T", (UPPER + DIGITS, 10), "/B", (UPPER + DIGITS, 10), "/", (ALNUM, 24)), "https://hooks.slack.com/services/{s}", "SLACK_URL=https://hooks.slack.com/services/{s}"),
    "discord-webhook": _in(form((DIGITS, 18), "/", (URL, 68)), "https://discord.com/api/webhooks/{s}"),
    "sentry-dsn": _in(form((HEX, 32)), "SENTRY_DSN=https://{s}@o12345.ingest.sentry.io/67890", 'dsn: "https://{s}@sentry.example.com/4"'),
    "bearer": _in(form((URL, 40)), "Authorization: Bearer {s}", '"Authorization": "Bearer {s}"', "headers={'authorization': f'Bearer {s}'}", "auth failed: Bearer {s}"),
    "api-key-header": _in(form((ALNUM, 32)), "X-Api-Key: {s}", '-H "x-api-key: {s}"', '"X-Auth-Token": "{s}"', "Private-Token: {s}", "Ocp-Apim-Subscription-Key: {s}", "api-key: {s}"),
    "cookie": _in(form((HEX, 40)), "Cookie: sessionid={s}; theme=dark", "Set-Cookie: sid={s}; Path=/; HttpOnly", "-H 'Cookie: a=1; auth={s}'", '"cookie": "connect.sid={s}"'),
    "curl-user": _in(password, "curl -u admin:{s} https://x.example.com", "curl -s --user 'svc:{s}' https://x", "curl https://x -u bot:{s} -o out"),
    "flag-password": _in(password, "tool login --username a --password {s}", "mysqldump --password={s} db", "gpg --batch --passphrase '{s}' -d f", "helm install --set db.password={s} x", '["--db-password", "{s}"]'),
    "flag-token": _in(form((ALNUM, 36)), "gh auth login --token {s}", "npm publish --token={s}", "vault write --secret-key {s} x", "deploy --auth-token '{s}'"),
    "flag-short": _in(password, "mysql -u root -p{s} shop", "sshpass -p '{s}' ssh a@b", "docker login -u me -p {s} r.example.com", "redis-cli -a {s} ping"),
    "netrc": _in(password, "machine api.example.com login bob password {s}"),
    "npmrc": _in(form((HEX, 8), "-", (HEX, 4), "-", (HEX, 27)), "//npm.example.com/:_authToken={s}"),
    "sql": _in(password, "CREATE USER app WITH PASSWORD '{s}';", "ALTER USER root IDENTIFIED BY '{s}';"),
    "code-password": _in(password, "conn = connect(host='db', user='a', password='{s}')", 'Password: "{s}",', 'setPassword("{s}")', "define('DB_PASSWORD', '{s}');", ":password => '{s}'", '<property name="password" value="{s}"/>', "<password>{s}</password>"),
    "said": _in(password, "the password for the staging db is {s}", "Password: {s}", "my wifi password is {s} btw", "**Password:** {s}"),
    "terraform-var": _in(password, 'variable "db" { default_password = "{s}" }', 'master_password = "{s}"'),
    "wireguard": _in(form((BASE64, 43), "="), "PrivateKey = {s}", "PresharedKey={s}\nEndpoint = h:51820", "private_key: {s}"),
    "secure-string": _in(password, 'ConvertTo-SecureString "{s}" -AsPlainText -Force', "ConvertTo-SecureString -String '{s}' -AsPlainText"),
}  # fmt: skip
"""Values that their place gives away."""


def secrets(seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield kind, line, and the secret in it that must not survive."""
    chance = Chance(seed)
    for kind, made in PROVIDERS.items():
        for _ in range(PER_KIND):
            secret = made(chance)
            yield kind, chance.choice(AROUND).format(s=secret), secret
    for kind, (names, made) in BY_NAME.items():
        for _ in range(PER_KIND):
            secret = made(chance)
            line = chance.choice(ASSIGNED).format(n=chance.choice(names), s=secret)
            yield kind, line, secret
    for kind, placed in PLACES.items():
        for _ in range(PER_KIND):
            yield (kind, *placed(chance))
    for kind, (made, lines) in FAMILIES.items():
        for line in lines:
            secret = made(chance)
            text = line.replace("{{", "{").replace("}}", "}").replace("{s}", secret)
            yield f"family {kind}", text, secret


def _fill(*templates: str) -> Made:
    """Return a maker of lines, in which {hN} is hex, {aN} letters and digits, {bN} Base64."""

    def make(chance: Chance) -> str:
        own = str(uuid.UUID(int=chance.getrandbits(128), version=4))
        line = chance.choice(templates).replace("{uuid}", own)
        for mark, letters in (("h", HEX), ("a", ALNUM), ("b", BASE64), ("d", DIGITS), ("u", URL)):
            pieces = line.split("{" + mark)
            line = pieces[0]
            for piece in pieces[1:]:
                count, _, rest = piece.partition("}")
                if not count.isdigit():
                    line += "{" + mark + piece
                    continue
                line += draw(chance, letters, int(count)) + rest
        return line

    return make


BENIGN: dict[str, Made] = {
    "placeholder": _fill('api_key = "<your-key>"', "OPENAI_API_KEY=your-api-key-here", "TOKEN=xxxxxxxxxxxxxxxx", 'password: "changeme"', "export API_KEY=sk-...", "SECRET=<REDACTED>", "api_key=YOUR_API_KEY"),
    "variable": _fill("PASSWORD=${DB_PASSWORD}", "token: ${{ secrets.GITHUB_TOKEN }}", 'Authorization: Bearer $TOKEN', 'apiKey: "{{ .Values.apiKey }}"', "password=%DB_PASS%", "TOKEN=$(cat token.txt)", "curl -u $USER:$PASS https://x"),
    "environment": _fill('key = os.environ["OPENAI_API_KEY"]', "const token = process.env.GITHUB_TOKEN;", 'os.getenv("DB_PASSWORD")', "api_key: ENV['STRIPE_KEY']", 'secret := os.Getenv("JWT_SECRET")', "token = settings.API_TOKEN"),
    "annotation": _fill("password: str", "token: Optional[str] = None", "apiKey?: string;", "password: string,", "secret: SecretStr", "def login(user: str, password: str) -> Token:", "token: &str,", "private_key: bytes = b''"),
    "call": _fill("token = get_token()", "password = getpass.getpass()", "const secret = await fetchSecret(name);", "api_key = config.get('api_key')", "password = hash_password(raw)", "token := r.Header.Get(\"X-Token\")", "key=lambda item: item.name"),
    "argument": _fill("login(user=user, password=password)", "connect(token=self.token, key=key)", "password=args.password,", "api_key=api_key", "{ token, secret }", "auth=(user, password)", "token=accessToken"),
    "git-hash": _fill("commit {h40}", "{h7} Fix the token refresh", "Merge {h40} into main", "HEAD is now at {h7} Add key rotation", "index {h7}..{h7} 100644", '"sha": "{h40}"', "base_sha={h40}"),
    "uuid": _fill("request_id={uuid}", '"sessionId":"{uuid}"', "id: {uuid}", "user {uuid} logged in", "token_id: {uuid}", "parentUuid: {uuid}", "key_id={uuid}"),
    "checksum": _fill("sha256:{h64}", "{h64}  lore.tar.gz", "md5={h32}", '"integrity": "sha512-{b86}=="', "--hash=sha256:{h64}", "etag: \"{h32}\"", "digest: sha256:{h64}"),
    "image": _fill("data:image/png;base64,iVBORw0KGgo{b300}", '<img src="data:image/gif;base64,R0lGOD{b120}">', "url(data:font/woff2;base64,d09GMgAB{b200})"),
    "tool-id": _fill('"tool_use_id":"toolu_01{a22}"', '"id":"msg_01{a22}"', "call_{a24}", "req_011C{a20}", "chatcmpl-{a29}", "resp_{h48}", "fc_{h48}"),
    "docs": _fill("The password must be at least 12 characters long.", "Pass your API key in the Authorization header.", "Tokens expire after 3600 seconds.", "Set the secret key in the settings.", "See the section on access keys.", "Authorization: Bearer tokens are recommended.", "password: at least 8 characters, one digit"),
    "path": _fill("/code/app/secrets/password.txt", "~/.ssh/id_rsa.pub", "key_file: /etc/ssl/private/server.key", "token_path=./data/token.json", "src/auth/token_store_v2.py:42", "secret: /run/secrets/db_password", "--token-file /tmp/t1"),
    "public-key": _fill("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} me@host", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{b200} ci", "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOC{b60}\n-----END PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----\nMIID{b60}\n-----END CERTIFICATE-----", "public_key={b44}"),
    "counts": _fill("max_tokens=4096", '"input_tokens": 1{d4}, "output_tokens": {d3}', "tokens: 1500", "token_count = 1{d5}", "keys: 3", "cache_read_input_tokens: {d6}", "password_attempts=5"),
    "colour": _fill("color: #{h6};", "background:#{h3}", "--key-color: #{h6};", "fill=\"#{h6}\"", "token.color = '#{h6}'"),
    "version": _fill("google-re2==1.1.20251105", "node v22.1{d1}.0", "lore 0.1.0 (2026-11-15)", '"version": "2.1.{d2}"', "key-value-store@3.{d1}.1", "auth-token@1.2.3"),
    "identifier": _fill("getAccessTokenFromAuthorizationHeader2()", "class PasswordResetTokenGenerator:", "MAX_PASSWORD_LENGTH_IN_CHARACTERS = 128", "test_the_token_is_refreshed_when_it_expires", "SECRET_KEY_ENV_NAME", "apiKeyInputFieldPlaceholder"),
    "lorem": _fill("Lorem ipsum dolor sit amet, consectetur adipiscing elit.", "sed do eiusmod tempor incididunt ut labore et dolore magna aliqua"),
    "minified": _fill("!function(e,t){var n=e.token,r=t.key;return n?r:e.password||t.secret}(a,b);", "a.key=b.token;c.secret=function(e){return e.password};d={key:e,token:f,auth:g}", "var t=e.key===27,n={password:!0,token:!1}"),
    "message": _fill("Error: invalid password for user bob", "token expired at 2026-01-01", "ERROR: secret not found: db-prod", "401 Unauthorized: missing API key", "password authentication failed for user \"postgres\"", "unexpected token \"}\" at line 12", "KeyError: 'api_key'"),
    "test-result": _fill("--- PASS: TestGetOrCreateSessionID_MultipleStates (0.03s)", "PASS: 128", "pass: 12 fail: 0", "✓ token refresh works (12 ms)", "PASSED tests/test_auth.py::test_token_v2", "ok 3 - password is hashed"),
    "schema": _fill('"password": {"type": "string", "minLength": 8}', "password VARCHAR(255) NOT NULL,", "token TEXT UNIQUE", "api_key: { type: String, required: true }", '"token": null', '"secret": true', "PRIMARY KEY (id), KEY idx_token (token)"),
    "example-url": _fill("postgres://user:password@localhost:5432/db", "https://user:pass@example.com", "redis://localhost:6379/0", "http://localhost:3000/@vite/client", "mysql://root:root@localhost/test", "https://host:8443/a@b", "git@github.com:a/b.git", "postgres://postgres:postgres@db/x"),
    "key-of-map": _fill('{"key": "value", "name": "x"}', "key: deps-v1-{h40}", 'cache-key: "linux-{h64}"', "partition_key=user#{d6}", "primary_key: id", "idempotency_key={uuid}", "<li key={item.id}>", "sort_key: created_at", "Key: ctrl+shift+p"),
    "page-token": _fill('"nextPageToken": "{a40}"', "next_token={a32}", "continuationToken: {a40}", "pageToken={a20}", "pad_token='[PAD]'", "eos_token: </s>", "cursor={b40}"),
    "ports": _fill("docker run -p 8080:80 nginx", "docker run -p 127.0.0.1:5432:5432 postgres:16", "mkdir -p src/auth", "ssh -p 2222 host", "psql -p 5432 -U app", "docker compose -p shop2 up -d", "chown -R 1000:1000 /data", "docker run -u 1000:1000 x"),
    "form": _fill('<input type="password" name="password" placeholder="Enter your password">', 'label: "Password"', 'password: "Password is required"', "<PasswordField label='New password' />", '"token": "The token to use for the request"', "placeholder: 'API key'"),
    "hash": _fill("password_hash=$2b$12${a53}", "pbkdf2:sha256:600000${a16}${h64}", "$argon2id$v=19$m=65536,t=3,p=4${b22}${b43}", 'passwordHash: "{h64}"', "hashed_password = '{h64}'"),
    "model": _fill("model: claude-sonnet-4-5-20250929", "gpt-4o-2024-11-20", "sk-learn is not a key", "task-{h8}-runner", "risk-assessment-of-the-token", "disk-usage-monitor-2026"),
    "diff": _fill("@@ -12,7 +12,9 @@ def get_token(self):", "-    token = request.token", "+    token = session.refresh_token", "diff --git a/auth/token.py b/auth/token.py", " password: string | null;"),
    "talk": _fill("can you rotate the token and tell me when it is done?", "the key is to keep the tests small", "my password is in the vault", "the token is missing", "what was the secret to making it fast?", "I pass the key as the first argument", "the secret is that we cache it"),
    "shell": _fill("read -s PASSWORD", "echo $TOKEN | gh auth login --with-token", "grep -rn 'password' src/", "unset AWS_SECRET_ACCESS_KEY", "export TOKEN=`cat ~/.token`", "ssh-keygen -t ed25519 -C me", "export PATH=$PATH:/usr/local/bin"),
    "base64-code": _fill("const wasm = 'AGFzbQEAAAA{b200}';", '"mappings": "AAAA,SAAS,{b60}"', "X-Trace: {b64}", '"signature":"EqQCCkYICxgCKkD{b200}"', "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjoz{b120}"),
    "mark": _fill("token=[secret:github:{h8}]", "password: [secret:password:{h8}]", "https://bob:[secret:url-password:{h8}]@db/x", "Authorization: Bearer [secret:jwt:{h8}]"),
    "log": _fill("2026-03-01 10:00:00,123 INFO auth.token: refreshed in {d3} ms", "[auth] session started pid={d5}", "GET /api/token?page=2 200 {d3}ms", "kafka key=user-{d5} partition=3", "trace_id={h32} span_id={h16}"),
}  # fmt: skip
"""Lines that hold no secret."""


def benign(seed: int) -> Iterator[tuple[str, str]]:
    """Yield kind and line of what must be left as it is."""
    chance = Chance(seed)
    for kind, made in BENIGN.items():
        for _ in range(PER_KIND):
            yield kind, made(chance)
    for kind, lines in BENIGN_FAMILIES.items():
        for line in lines:
            yield f"family {kind}", filled(line, chance)
