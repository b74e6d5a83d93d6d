"""Lines that redaction must leave alone, though they are long, random or speak of secrets."""

from __future__ import annotations

from heldout_draw import Kind, add_lines, call_bash, escape, number_lines

SUMS = (
    Kind("git-hashes", (
        "commit «hex:40»", "index «hex:7»..«hex:7» 100644",
        "«hex:9» «verb» token refresh in «file».py",
        "HEAD is now at «hex:8» «verb» password reset form", "Merge: «hex:7» «hex:7»",
        "From «hex:40» Mon Sep 17 00:00:00 2001", "uses: actions/checkout@«hex:40» # v6",
    )),
    Kind("checksums", (
        "«hex:64»  dist/«file»-1.«dig:1».tar.gz", "sha256:«hex:64»",
        "    --hash=sha256:«hex:64» \\",
        "MD5 («file».iso) = «hex:32»", "checksum = \"«hex:64»\"", "ETag: W/\"«hex:32»\"",
        "«company»/«file» v1.«dig:1».0 h1:«b64:43»=",
    )),
    Kind("integrity", (
        '      "integrity": "sha512-«b64:86»==",', "  integrity sha512-«b64:86»==",
        '<script src="«file».js" integrity="sha384-«b64:64»" crossorigin="anonymous"></script>',
        "    resolution: {integrity: sha512-«b64:86»==}",
    )),
    Kind("lock-files", (
        '{ url = "https://files.«company».com/packages/«hex:2»/«hex:2»/«hex:60»/'
        '«file»-2.0.whl", hash = "sha256:«hex:64»" }',
        'resolved "https://registry.yarnpkg.com/js-tokens/-/js-tokens-4.0.«dig:1».tgz#«hex:40»"',
        '"node_modules/«word»-token": {"version": "3.«dig:1».«dig:1»"}',
        'source = "registry+https://github.com/rust-lang/crates.io-index" # «hex:7»',
        'name = "secrecy"\nversion = "0.«dig:1».«dig:1»"\nchecksum = "«hex:64»"',
    )),
    Kind("docker-digests", (
        "FROM python:3.12-slim@sha256:«hex:64»", "Digest: sha256:«hex:64»",
        "«hex:12»: Pull complete",
        "«hex:12»   «company»/«service»:1.«dig:1»   \"./entrypoint\"   2 hours ago   Up 2 hours",
        " => => writing image sha256:«hex:64»",
    )),
    Kind("uuids", (
        '"sessionId":"«uuid»","parentUuid":"«uuid»"', "request «uuid» took «num» ms",
        "SELECT * FROM «db» WHERE id = '«uuid»';", "/api/users/«uuid»/avatar",
        "correlation-id: «uuid»",
    )),
    Kind("agent-ids", (
        '"tool_use_id":"toolu_01«b62:22»"', '"id":"msg_01«b62:22»","role":"assistant"',
        '"call_id":"call_«b62:24»"', '"requestId":"req_011C«b62:20»"', "resp_«hex:48»",
        '"id":"chatcmpl-«b62:29»"', '{"type":"reasoning","id":"rs_«hex:48»"}',
    )),
    Kind("agent-signatures", (
        '{"type":"thinking","thinking":"The test fails.","signature":"EqQBCkYI«b64:300»=="}',
        '"encrypted_content":"gAAAAAB«url:300»=="',
        '"signature_delta","signature":"ErUB«b64:200»="',
    )),
    Kind("base64-data", (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA«b64:240»",
        "url(data:font/woff2;base64,d09GMgAB«b64:200»)",
        'const wasm = "AGFzbQEAAAAB«b64:200»"',
        '"source":{"type":"base64","media_type":"image/jpeg","data":"/9j/4AAQSkZJRg«b64:300»"}',
        "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjoz«b64:150»",
    )),
    Kind("public-keys", (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«b64:43» «user»@«service»",
        "ssh-rsa AAAAB3NzaC1yc2E«b64:350» «user»",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkq«b64:52»\n«rows:3»\n-----END PUBLIC KEY-----",
        "PublicKey = «b64:42»8=", "age1«an:58»",
        "github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«b64:43»",
    )),
    Kind("certificates", (
        "-----BEGIN CERTIFICATE-----\nMIID«b64:60»\n«rows:4»\n-----END CERTIFICATE-----",
        "    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1J«b64:300»",
        "SHA256 Fingerprint=«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»",
        "SHA256:«b64:43» «user»@«service» (ED25519)",
    )),
    Kind("dotnet-and-java", (
        'Version=4.«dig:1».0.0, Culture=neutral, PublicKeyToken=b77a5c56«hex:8»',
        "java.security.KeyStoreException: keystore password was incorrect at line «num»",
        "at com.«company».security.TokenFilter.doFilter(TokenFilter.java:«num»)",
    )),
)  # fmt: skip

NUMBERS = (
    Kind("token-counts", (
        "max_tokens: «num»", "tokens=«num»", '"usage":{"input_tokens":«num»,"output_tokens":«num»}',
        "Total tokens: «num» (cached «num»)",
        "cache_read_input_tokens=«num» cache_creation_input_tokens=«num»",
        "the context window holds «num»k tokens",
        "max_completion_tokens=«num», temperature=0.«dig:1»",
        "token_count: «num»,", "tokens/s: «num».«dig:2»",
    )),
    Kind("numbers-and-times", (
        "«time» INFO [«service»] 200 GET /login «num»ms", "1«dig:12» «num» «num»",
        "password_reset_timeout = «num»", "SESSION_COOKIE_AGE=«num»", "TOKEN_TTL_SECONDS=«num»",
        "ACCESS_TOKEN_EXPIRE_MINUTES: «num»", "PASSWORD_MIN_LENGTH = 1«dig:1»  # «word»",
    )),
    Kind("hex-dumps", (
        "0000«hex:4»  «hex:2» «hex:2» «hex:2» «hex:2» «hex:2» «hex:2» «hex:2» «hex:2»  |........|",
        "0x00007f«hex:10» <+«num»>: mov rax, qword ptr [rbp - 0x«hex:2»]", "Address: 0x«hex:40»",
        "#«dig:2» 0x«hex:16» in pthread_create () from /lib64/libc.so.6",
    )),
    Kind("network", (
        "inet6 fe80::«hex:4»:«hex:4»:«hex:4»:«hex:4»/64",
        "link/ether «hex:2»:«hex:2»:«hex:2»:«hex:2»:«hex:2»:«hex:2»",
        "10.0.«dig:2».3:54«dig:3» -> 10.0.0.1:443 ESTABLISHED",
    )),
)  # fmt: skip

ADDRESSES = (
    Kind("urls-with-ids", (
        "https://docs.google.com/document/d/1«url:43»/edit#heading=h.«an:12»",
        "https://www.youtube.com/watch?v=«url:11»",
        "https://github.com/«company»/«service»/blob/«hex:40»/src/«file».ts#L«num»",
        "https://www.figma.com/design/«b62:22»/«Word»?node-id=«num»-«num»",
        "https://claude.ai/chat/«uuid»",
        "https://«company».atlassian.net/browse/AUTH-«num»?focusedCommentId=«num»",
        "https://«company».com/?utm_source=mail&utm_campaign=«word»&gclid=Cj0KCQ«url:60»",
    )),
    Kind("urls-with-ports", (
        "http://localhost:«num»/login?next=/token/new",
        "postgres://localhost:5432/«db»?sslmode=disable&pool=«num»",
        "git@github.com:«company»/«service»-«num».git", "redis://«service»:6379/«num»",
        "ssh://git@«host»:«num»/«db».git",
        "https://registry.npmjs.org/@«company»%2f«word»: 404 «num»",
    )),
    Kind("long-paths", (
        "/code/«service»/src/main/java/com/«company»/auth/PasswordResetTokenRepository«num».java",
        "node_modules/.pnpm/@«company»+«word»@7.«dig:2».«dig:1»_react@18.2.0_"
        "«an:26»/node_modules/token-types/index.js",
        "/nix/store/«an:32»-«word»-1.«dig:1».drv",
        "~/.cache/uv/archive-v0/«url:21»/lib/python3.12/site-packages/secrets.py",
        "/var/lib/docker/overlay2/«hex:64»/merged",
        "C:\\Users\\«user»\\AppData\\Local\\Temp\\«an:8»\\tokenizer_«num».json",
    )),
    Kind("object-names", (
        "s3://«company»-«db»/2026/0«dig:1»/part-00«dig:3»-«uuid».c000.snappy.parquet",
        "arn:aws:secretsmanager:eu-west-1:«dig:12»:secret:«service»/db-«b62:6»",
        "arn:aws:iam::«dig:12»:role/«service»-token-reader",
        "gs://«company»-artifacts/«hex:40»/«file».zip",
        "projects/«company»/secrets/«word»-api-key/versions/«num»",
    )),
    Kind("kubernetes-names", (
        "«service»-«hex:10»-«an:5»   1/1   Running   0   «num»m",
        "secret/«service»-token-«an:5» created",
        "    secretName: «service»-tls-«num»", "serviceaccount/«word»-«num» unchanged",
        "        secretKeyRef:\n          name: «service»-«num»\n          key: password",
    )),
    Kind("assets", (
        "dist/assets/index-«url:8».js   «num».«dig:2» kB │ gzip: «num».10 kB",
        "<link href=\"/_next/static/css/«hex:16».css\">",
        ".css-«an:7»{color:#«hex:6»;background:#«hex:6»}", "--token-color-«word»: #«hex:6»;",
        ".token.keyword-«num» { color: #«hex:6» }", "input[type=password].«word»{padding:«num»px}",
    )),
    Kind("minified-code", (
        "!function(e,t){var n=t(«num»),r=e.token;r&&n.push(r.key)}(this,function(){return «num»});",
        "const a=e=>e.password?.length>«num»?b(e):c(e.token||e.key,«num»)",
        "t.passwordField=t.key||o(\"«word»\",«num»),n",
    )),
)  # fmt: skip

CODE = (
    Kind("annotations", (
        "password: str | None = None  # «word»",
        "def login(user: str, password: str, retries: int = «num») -> Token:",
        "interface «Word» { token: string; apiKey?: string; secret: Buffer }",
        "private readonly «word»Token: AccessToken;",
        "type Config struct { Password string `json:\"password\"`; Port int } // «word»",
        "api_key: SecretStr = Field(alias=\"«word»\")",
        "fn verify_«word»(token: &str, secret: &[u8]) -> Result<Claims>",
        "pub password: Option<«Word»Password>,",
    )),
    Kind("look-ups", (
        'api_key = os.environ["«WORD»_API_KEY"]', "const token = process.env.«WORD»_TOKEN;",
        'secret := os.Getenv("«WORD»_SECRET")',
        "password = settings.«word».password", "token = request.headers.get(\"x-«word»-token\")",
        "let key = std::env::var(\"«WORD»_API_KEY\")?;", "PASSWORD=$(pass show «company»/«word»)",
        "export TOKEN=\"$(vault kv get -field=token secret/«service»)\"",
        "apiKey: import.meta.env.VITE_«WORD»_API_KEY,",
    )),
    Kind("calls", (
        "token = create_access_token(user_id=«num»)",
        "password = getpass.getpass(\"Password for «user»: \")",
        "const secret = await generateSecret({ length: «num» })",
        "hashed_password = bcrypt.hash(password, «num»)",
        "key = secrets.token_urlsafe(«num»)",
        "password_hash = hash_password(form.password.data, rounds=«num»)",
        "self.token = self._fetch_token(scope=\"«word»\")",
        "if (!validatePassword(password, «num»)) return false;",
        "const [token, setToken] = useState<string | null>(«word»);",
    )),
    Kind("keys-of-data", (
        "<Row key=\"«word»-«num»\" data={row} />",
        "id = Column(Integer, primary_key=True, index=«num»)",
        "cache_key = f\"user:{user_id}:«word»:«num»\"",
        "for key, value in «word».items():  # «num»", "sort_key=lambda row: row[«num»]",
        "foreign_key: «db»_id", "keyboard shortcut: key=\"Ctrl+Shift+«num»\"",
        "keyPath: \"«db».items.«num»\"",
        "partition_key = \"«db»_«num»\"",
    )),
    Kind("tests-of-validators", (
        "assert not is_strong_password(\"«word»\")",
        "it('rejects a password without digits («num»)', () => {",
        "def test_token_of_«word»_expires_after_«num»_seconds():",
        "expect(screen.getByLabelText('Password')).toHaveLength(«num»)",
        "FAILED tests/test_auth.py::test_password_«word» - AssertionError: «num»",
        "PASS src/auth/«word»Token.test.ts («num» ms)",
    )),
    Kind("regexes", (
        "re.compile(r\"gh[pousr]_[A-Za-z0-9]{«num»}\")", "const KEY = /sk-ant-[a-z0-9-]{«num»,}/i",
        "password_pattern = r\"^(?=.*[A-Z])(?=.*\\d).{«num»,}$\"",
        "grep -rnE '(api[_-]?key|secret|token)\\s*[:=]' «file»/",
        "rg -n \"password\" src/«file».py | head -«num»",
        "s/token=[^&]*/token=«hidden|removed|…»/g; «num»q",
    )),
    Kind("sql-schema", (
        "password_hash VARCHAR(«num») NOT NULL,",
        "ALTER TABLE «db» ADD COLUMN reset_token TEXT DEFAULT NULL; -- «num»",
        "CREATE INDEX idx_«db»_token_«num» ON «db» (access_token);",
        "SELECT id, password, api_key FROM «db» LIMIT «num»;",
        "UPDATE «db» SET token = NULL WHERE id = «num»;",
        "token_id BIGINT REFERENCES «db»(id), -- «num»",
    )),
    Kind("forms", (
        "<input type=\"password\" name=\"password\" id=\"«word»\""
        " autocomplete=\"current-password\" />",
        "<meta name=\"csrf-param\" content=\"authenticity_token\" data-«word»>",
        "<label for=\"password\">«Word» password</label>",
        "placeholder=\"Enter your password («num» characters)\"", "{% csrf_token %} {# «word» #}",
        "CSRF_COOKIE_NAME = \"«word»_csrftoken\"", "xsrfHeaderName: 'X-XSRF-TOKEN', // «word»",
    )),
    Kind("translations", (
        "\"auth.password.«word»\": \"Your password has expired\",",
        "login.token.«word»=Das Token ist abgelaufen",
        "msgid \"Forgot your password, «Word»?\"",
        "\"password_too_short\": \"At least {{count}} characters («num»)\",",
        "passwordLabel: 'Passwort «Word» eingeben',",
        "\"secret.«word».title\": \"Secrets and variables\",",
    )),
    Kind("parsers", (
        "Unexpected token '<' at position «num»",
        "SyntaxError: Unexpected token } in JSON at position «num»",
        "error TS1005: ';' expected near token `«word»` («num»)",
        "tokenizer.encode(\"«word» «word»\", max_length=«num»)",
        "token = next(stream)  # kind=«word»", "Token(type='NAME', value='«word»', line=«num»)",
        "eos_token_id=«num», pad_token=\"<pad>\"",
        "special_tokens=[\"<|«word»|>\", \"[MASK]\"]",
    )),
    Kind("imports", (
        "from «company».auth.tokens import create_token, verify_password",
        "import secrets  # for «word»",
        "import { PasswordField, useToken } from '@«company»/«word»'",
        "require('jsonwebtoken/«word»')",
        "use secrecy::{ExposeSecret, «Word»};", "#include <openssl/«word»_key.h>",
    )),
)  # fmt: skip

STAND_INS = (
    Kind("placeholders", (
        "«COMPANY|SERVICE|OPENAI|DB»_API_KEY=your-«word»-api-key-here",
        "password: <your-«word»-password>", "export TOKEN=<«word»-token>",
        "api_key = \"YOUR_«WORD»_API_KEY\"",
        "«MAPS|MAIL|CHAT»_TOKEN=xxxxxxxxxxxxxxxxxxxx  # «word»", "SECRET_KEY=replace-me-«word»",
        "token: \"[REDACTED]\" # «word»", "DB_PASSWORD=******** («word»)", "«word»_secret: TODO",
    )),
    Kind("references", (
        "password: ${«DB|SMTP|LDAP»_PASSWORD} # «word»",
        "token: ${{ secrets.«NPM|PYPI|DEPLOY»_TOKEN }} # «word»",
        "password = var.«db»_password",
        "DATABASE_URL=postgres://${DB_USER}:${DB_PASSWORD}@«host»/«db»",
        "password: {{ vault_«db»_password }}", "-e API_KEY=$API_KEY «company»/«service»",
        "-H \"Authorization: Bearer $TOKEN\" https://«host»/«word»",
        "password = data.aws_ssm_parameter.«db».value", "db_password: !vault_ref «db»",
        "token: op://«company»/«word»/credential",
    )),
    Kind("documented-keys", (
        "Anthropic keys start with `sk-ant-…` and go to «service»",
        "set OPENAI_API_KEY=sk-... before running «service»",
        "The token looks like ghp_xxxx…, created by «user»",
        "e.g. `AKIA...` followed by the secret, see «file».md",
        "format: xoxb-<team>-<bot>-<random> («word»)", "Authorization: Bearer <token> («word»)",
        "postgresql://USER:PASSWORD@HOST:PORT/«db»",
        "-----BEGIN PRIVATE KEY----- is the header that «file».py looks for",
    )),
    Kind("help-texts", (
        "  -p, --password <password>   password of «user» (asked for if absent)",
        "  --token string   access token of «service» (env «WORD»_TOKEN)",
        "usage: «word» [--api-key KEY] [--secret-file PATH] [--port «num»]",
        "Options: --password-stdin  take the password of «service» from stdin",
        "      --from-literal=[]: Specify a key and literal value («num»)",
    )),
    Kind("pip-and-npm", (
        "Successfully installed keyring-25.«dig:1» secretstorage-3.«dig:1» tokenizers-0.«dig:2»",
        "added «num» packages, and audited «num» packages in 12s",
        "npm warn deprecated request-promise@4.«dig:1».«dig:1»: see «word»",
        " + @«company»/token-«word» 1.«dig:1».«dig:1»",
    )),
)  # fmt: skip

PROSE = (
    Kind("log-messages", (
        "«time» WARN token expired for user «num»", "Error: invalid password («num» attempts left)",
        "401 Unauthorized: missing API key («service»)",
        "remote: Invalid username or token. Password authentication is not supported for «word».",
        "auth: secret not found in «service»",
        "Permission denied (publickey,password) on «host»",
        "password authentication failed for user \"«user»\" on «host»",
        "Token refresh succeeded in «num» ms", "Refreshing access token for «service»",
    )),
    Kind("commit-messages", (
        "feat(auth): «verb» password reset tokens for «word»",
        "fix: «verb» api key handling in «service» (#«num»)",
        "chore(deps): bump js-tokens from 8.0.«dig:1» to 9.0.«dig:1»",
        "Rotate secret of «service» and «verb» docs", "«verb» token bucket of «word»",
        "test: «verb» passwords with unicode, closes #«num»",
    )),
    Kind("english", (
        "The password must be rotated every «num» days, according to «company».",
        "Where do we keep the token of «service»?",
        "I think the key insight is that «word» matters more than «word».",
        "Please never write the API key into the log of «service».",
        "The secret to good «word» is patience.",
        "Each session gets a token, and «user» can revoke it.",
        "Your password is stored as a hash in «db».",
        "My password is not working on «service», can you look?",
    )),
    Kind("german", (
        "Das Passwort wird in «db» nie im Klartext gespeichert.",
        "Wo liegt der Schlüssel für «service»?", "Das Token ist nach «num» Minuten abgelaufen.",
        "Bitte das Passwort von «user» zurücksetzen.",
        "Der Zugangsschlüssel für «company» fehlt noch.",
    )),
    Kind("french-and-spanish", (
        "Le mot de passe de «user» doit être changé.",
        "Le jeton de «service» a expiré depuis «num» minutes.",
        "La contraseña de «user» no es válida.",
        "El token de «service» caduca en «num» minutos.", "La clé du problème est «word».",
        "¿Dónde está la clave de «service»?",
    )),
    Kind("other-scripts", (
        "«service» のパスワードを変更してください。", "トークンの有効期限は«num»分です。",
        "请重置«user»的密码。", "令牌在«num»秒后过期。",
        "Пароль пользователя «user» истёк.", "Токен действует «num» минут.",
        "비밀번호는 «num»자 이상이어야 합니다.", "كلمة المرور قصيرة جدا («num»)",
    )),
    Kind("ascii-art", (
        "+--------+\n| «word» | ---> | token «num» |\n+--------+",
        "=====================[ «word» ]=====================",
        "├── «word»/\n│   ├── password.py\n│   └── token_«num».py",
        "|--- «word» ---|--- secret ---|--- «num» ---|", "# «Word» " + "#" * 60,
    )),
    Kind("stack-traces", (
        "  File \"/code/«service»/auth/token.py\", line «num», in get_password",
        "    at verifyToken (/code/«service»/src/auth.ts:«num»:17)",
        "goroutine «num» [running]: main.(*TokenStore).Get(0xc000«hex:6», {0x«hex:6», 0x24})",
        "KeyError: 'password' («file».py:«num»)",
        "TypeError: Cannot read properties of undefined (reading 'token') at «file».js:«num»",
        "AttributeError: '«Word»' object has no attribute 'api_key'",
    )),
    Kind("markdown", (
        "| `password` | string | the password of «user», at least «num» characters |",
        "## API keys and tokens of «word»",
        "- [ ] rotate the «word» token",
        "See [tokens](docs/«word»/tokens.md#api-key) for `api_key`.",
        "**Secret:** stored in the vault under «word»",
        "1. Create a token for «service»: open Settings › Developer",
    )),
    Kind("shell-talk", (
        "gh auth status --hostname github.com # «word»",
        "ssh-keygen -t ed25519 -C «user»@«company».com -f ~/.ssh/id_«word»",
        "kubectl get secret «service»-«num» -o yaml",
        "docker login -u «user» registry.«company».com", "mysql -u «user» -p «db»",
        "mkdir -p src/«service»/«file»", "cp -p «file».py /tmp/«word».py",
        "vault kv get secret/«service»/«word»", "aws secretsmanager list-secrets --max-items «num»",
        "curl -u «user» https://«host»/«word»",
    )),
    Kind("yaml-and-json-settings", (
        "passwordPolicy: { minLength: 1«dig:1», history: «num» }",
        "\"tokenType\": \"bearer\", \"expires_in\": «num»",
        "automountServiceAccountToken: false # «word»",
        "secretsStore: vault-«word»", "\"requirePassword\": true, \"«word»\": «num»",
        "token_endpoint: https://«service».«company».com/oauth/token",
        "\"password\": null, \"user\": \"«user»\", \"n\": «num»", "api_key_required: true # «num»",
        "password_file: /run/secrets/«word»_«num»",
    )),
    Kind("design-tokens", (
        "\"tokens\": {\"color.«word»\": \"#«hex:6»\", \"space.2\": \"«num»px\"}",
        "--space-token-«num»: 0.5rem;", "const tokens = { «word»: '#«hex:6»' }",
        "theme.tokens.«word».«num»", "$token-«word»-«num»: map-get($tokens, '«word»');",
    )),
)  # fmt: skip

MODULE = (
    "def «verb»_«word»(password: str) -> str:\n"
    "    token = sign(password, key=settings.key)\n"
    "    return token",
    "const { token } = await login(user, password)\nsetToken(token) // «word»",
    "services:\n  «service»:\n    environment:\n"
    "      DB_PASSWORD: ${DB_PASSWORD}\n      API_KEY: ${API_KEY:-}",
    "class «Word»Token(Base):\n    key = Column(String(64))\n    secret_hash = Column(String(128))",
)
WRAPPED = (
    Kind("code-numbered", MODULE, shape=number_lines),
    Kind("code-in-diff", MODULE, shape=add_lines),
    Kind("code-escaped", MODULE, shape=escape),
    Kind("bash-calls", (
        "grep -rn \"api_key\\|password\" src/«service» | head -«num»",
        "git log -S'token' --oneline -- «file».py | head -«num»",
        "export PGPASSWORD=\"$DB_PASSWORD\" && psql -h «host» -c 'select «num»'",
        "git show «hex:40»:src/«file».ts",
        "curl -s -H \"Authorization: Bearer ${TOKEN}\" https://«host»/v1/«word»",
        "uv run pytest tests/test_«file».py -k 'token and not password' -n «num»",
        "docker login ghcr.io -u \"$USER\" --password-stdin < ~/«word».txt",
        "mysql -u root -p\"$MYSQL_PASSWORD\" «db» -e 'select «num»'",
    ), shape=call_bash),
    Kind("session-records", (
        '{"prompt_cache_key":"«uuid»","model":"gpt-5.«dig:1»-codex"}',
        '{"type":"summary","leafUuid":"«uuid»","summary":"Password reset for «word»"}',
        '{"idempotencyKey":"«uuid»","attempt":«num»}',
        '"uuid":"«uuid»","timestamp":"«time»","cwd":"/code/«service»"',
        '{"type":"token_count","info":{"usage":{"input_tokens":«num»,"total_tokens":«num»}}}',
        '"thread_id":"thread_«b62:24»","run_id":"run_«b62:24»"', "x-request-id: req_«hex:32»",
        "cf-ray: «hex:16»-FRA",
    )),
)  # fmt: skip

BENIGN: tuple[Kind, ...] = (*SUMS, *NUMBERS, *ADDRESSES, *CODE, *STAND_INS, *PROSE, *WRAPPED)
