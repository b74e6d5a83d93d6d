"""Secrets in the files that agents read aloud, in source code, in logs and in chat."""

from __future__ import annotations

from heldout_draw import Kind, escape, number_lines

PW, QUOTED = ("«pw»",), ("«pw»", "«pwsym»")

DOTFILES = (
    Kind("file-npmrc", (
        "//registry.npmjs.org/:_authToken=«SECRET»",
        "//npm.«company».com/:_authToken=\"«SECRET»\"",
        "//npm.pkg.github.com/:_authToken=«SECRET»",
        "npmAuthToken: \"«SECRET»\"",
        "//«company».jfrog.io/api/npm/«db»/:_password=«SECRET»",
    ), ("npm_«b62:36»", "«uuid»", "ghp_«b62:36»", "«b62:43»", "«b64:43»=")),
    Kind("file-pypirc-netrc", (
        "[pypi]\nusername = __token__\npassword = pypi-AgEI«SECRET»",
        "machine «host» login «user» password «SECRET»",
        "machine api.heroku.com\n  login «user»@«company».com\n  password «SECRET»",
        "«host»:5432:«db»:«user»:«SECRET»",
    ), ("«url:120»", "«b62:20»", "«uuid»", "«b62:18»")),
    Kind("file-aws-credentials", (
        "[default]\naws_access_key_id = AKIA«b32:16»\naws_secret_access_key = «SECRET»\nregion"
        " = eu-west-1",
        "[«company»]\naws_access_key_id=AKIA«b32:16»\naws_secret_access_key=«SECRET»",
        '{"AccessKeyId": "ASIA«b32:16»", "SecretAccessKey": "«SECRET»", "Expiration": "«time»"}',
        "AWS Access Key ID: AKIA«b32:16»\nAWS Secret Access Key: «SECRET»",
    ), ("«b64:40»",)),
    Kind("file-kubeconfig", (
        "users:\n- name: «user»\n  user:\n    token: «SECRET»",
        "- name: «company»-admin\n  user:\n    password: «SECRET»\n    username: «user»",
        "    token: \"«SECRET»\"  # «company»",
    ), ("«jwt»", "«an:6».«an:16»", "«b62:32»")),
    Kind("file-docker-config", (
        '{"auths": {"https://index.docker.io/v1/": {"auth": "«SECRET»"}}}',
        '\t\t"registry.«company».com": {\n\t\t\t"auth": "«SECRET»"\n\t\t}',
        '"identitytoken": "«SECRET»"',
    ), ("«b64:39»=", "«b64:48»")),
    Kind("file-k8s-secret", (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: «service»\ndata:\n  password: «SECRET»",
        "kind: Secret\nstringData:\n  DB_PASSWORD: «SECRET»\ntype: Opaque # «service»",
        "data:\n  api-token: «SECRET»\nkind: Secret",
    ), ("«b64:23»=", "«b62:24»", "«b64:40»")),
    Kind("file-git-credentials", (
        "https://«user»:«SECRET»@github.com",
        "protocol=https\nhost=github.com\nusername=«user»\npassword=«SECRET»",
        "github.com:\n    user: «user»\n    oauth_token: «SECRET»\n    git_protocol: https",
    ), ("gho_«b62:36»", "ghp_«b62:36»", "«hex:40»")),
    Kind("file-mcp-config", (
        '"mcpServers": {"«db»": {"command": "npx", "env": {"API_TOKEN": "«SECRET»"}}}',
        '      "args": ["-y", "mcp-«db»", "--api-key", "«SECRET»"],',
        "[mcp_servers.«db».env]\nAPI_KEY = \"«SECRET»\"",
        'claude mcp add «db» -e «company»_KEY=«SECRET» -- npx -y mcp-«db»',
        'claude mcp add --transport http «db» https://mcp.«company».com --header '
        '"Authorization: Bearer «SECRET»"',
    ), ("«b62:32»", "«hex:40»", "«url:43»")),
)  # fmt: skip

CONFIG = (
    Kind("config-compose", (
        "    environment:\n      POSTGRES_USER: «user»\n      POSTGRES_PASSWORD: «SECRET»",
        "      - MYSQL_ROOT_PASSWORD=«SECRET»\n      - MYSQL_DATABASE=«db»",
        "      MINIO_ROOT_PASSWORD: '«SECRET»'",
        "    command: redis-server --requirepass «SECRET»",
    ), PW),
    Kind("config-terraform", (
        '  password = "«SECRET»"',
        'variable "db_password" {\n  default = "«SECRET»"\n}',
        'master_password      = "«SECRET»" # «db»',
        '      + secret_key = "«SECRET»"',
        'terraform apply -var="db_password=«SECRET»" -target=module.«db»',
        'provider "«company»" {\n  token = "«SECRET»"\n}',
    ), PW),
    Kind("config-properties", (
        "spring.datasource.password=«SECRET»",
        "spring.mail.password = «SECRET»",
        "«company».«service».api.secret=«SECRET»",
        "ssl.keystore.password=«SECRET»",
        "sasl.jaas.config=…PlainLoginModule required username=\"«user»\" password=\"«SECRET»\";",
    ), PW),
    Kind("config-ini", (
        "[client]\nuser=«user»\npassword=«SECRET»",
        "[smtp]\nhost = «host»\npasswd = «SECRET»",
        "db_password: «SECRET» ; «db»",
        "auth_key='«SECRET»'",
        "admin_password = \"«SECRET»\"",
    ), PW),
    Kind("config-xml", (
        "<password>«SECRET»</password>",
        "<server><id>«company»</id><username>«user»</username><password>"
        "«SECRET»</password></server>",
        '<add key="ClearTextPassword" value="«SECRET»" />',
        '<property name="password" value="«SECRET»"/>',
        '<Resource name="jdbc/«db»" username="«user»" password="«SECRET»" />',
    ), PW),
    Kind("config-actions", (
        "        env:\n          DEPLOY_TOKEN: «SECRET»",
        "      with:\n        password: «SECRET»\n        username: «user»",
        "  deploy:\n    variables:\n      REGISTRY_PASSWORD: \"«SECRET»\"",
        "##[debug]Evaluating env.API_SECRET => '«SECRET»'",
    ), ("«b62:24»", "«hex:40»")),
    Kind("config-makefile", (
        "deploy: ; API_TOKEN=«SECRET» ./deploy.sh «service»",
        "DB_PASSWORD ?= «SECRET»",
        "export REGISTRY_TOKEN := «SECRET»",
    ), PW),
    Kind("config-dockerfile", (
        "ENV DB_PASSWORD=«SECRET» PORT=80«dig:2»",
        "ARG NPM_TOKEN=«SECRET»",
        "RUN pip config set global.index-url https://«user»:«SECRET»@pypi.«company».com/simple",
        "LABEL a=b\nENV API_SECRET \"«SECRET»\"",
    ), ("«b62:20»", "«url:24»")),
    Kind("config-ansible-php", (
        "ansible_become_pass: «SECRET»",
        "«host» ansible_user=«user» ansible_password=«SECRET»",
        "define('DB_PASSWORD', '«SECRET»');",
        "'password' => env('DB_PASSWORD', '«SECRET»'),",
        "define( 'AUTH_KEY', '«SECRET»' );",
        "$conn = new mysqli('«host»', '«user»', '«SECRET»', '«db»'); // password",
    ), PW),
    Kind("config-numbered", (
        "db:\n  host: «host»\n  user: «user»\n  password: «SECRET»",
        "const config = {\n  host: '«host»',\n  apiSecret: '«SECRET»',\n}",
        "DB_USER=«user»\nDB_PASS=«SECRET»",
    ), PW, shape=number_lines),
    Kind("config-escaped", (
        "db:\n  user: «user»\n  password: \"«SECRET»\"\n",
        "# «service»\nDB_PASS='«SECRET»'\nDEBUG=0",
        "const key = {\"clientSecret\": \"«SECRET»\"}\n// «db»",
    ), PW, shape=escape),
)  # fmt: skip

SOURCE = (
    Kind("source-python", (
        'API_SECRET = "«SECRET»"',
        "password: str = '«SECRET»'",
        'conn = psycopg2.connect(host="«host»", user="«user»", password="«SECRET»")',
        "    smtp.login('«user»@«company».com', '«SECRET»')",
        'auth=("«user»", "«SECRET»")  # basic auth password',
        'os.environ.setdefault("SERVICE_TOKEN", "«SECRET»")',
        'token = os.getenv("API_TOKEN", "«SECRET»")',
    ), ("«b62:24»", "«Word»-«word»-«dig:4»", "«hex:32»")),
    Kind("source-javascript", (
        "const apiKey = '«SECRET»';",
        "export const JWT_SECRET = process.env.JWT_SECRET ?? \"«SECRET»\"",
        "  clientSecret: `«SECRET»`,",
        "jwt.sign(payload, { secret: '«SECRET»' })",
        "axios.defaults.headers.common['X-Api-Key'] = '«SECRET»'",
        "app.use(session({ secret: '«SECRET»', resave: false }))",
    ), ("«b62:32»", "«hex:40»")),
    Kind("source-other-languages", (
        'const authToken = "«SECRET»" // «service»',
        'private static final String DB_PASSWORD = "«SECRET»";',
        'let secret_key: &str = "«SECRET»";',
        'var clientSecret = @"«SECRET»";',
        'config.api_token = "«SECRET»"',
        'val password by extra("«SECRET»")',
        '#define WIFI_PASSWORD "«SECRET»"',
        "$password = '«SECRET»';",
        'static let apiSecret = "«SECRET»"',
    ), ("«b62:20»", "«Word»«dig:4»«word»", "«url:30»")),
    Kind("source-symbols-in-password", (
        "DB_PASSWORD='«SECRET»'",
        'password = "«SECRET»"',
        '"password": "«SECRET»"',
        "$env:ADMIN_PASSWORD = '«SECRET»'",
        "smtp_password: '«SECRET»'",
    ), ("«pwsym»",)),
)  # fmt: skip

TALK = (
    Kind("chat-password", (
        "my password is «SECRET», can you log in and check?",
        "the password for «user» is: «SECRET»",
        "Login with «user» / password «SECRET» on «host»",
        "pw: «SECRET»",
        "password = «SECRET» (don't commit it!)",
        "Credentials: username «user», password `«SECRET»`",
        "I changed the root password to \"«SECRET»\" yesterday",
    ), ("«Word»«dig:4»!", "«b62:14»", "«Word»-«word»-«word»-«dig:2»")),
    Kind("chat-key", (
        "use this api key: «SECRET»",
        "here's the token: «SECRET»",
        "the API key is «SECRET» and the region is eu-west-1",
        "my secret key is «SECRET», put it into the env of «service»",
        "Access token for «company»: «SECRET»",
        "api key → «SECRET»",
    ), ("«b62:32»", "«hex:40»", "«url:36»")),
    Kind("chat-other-languages", (
        "das Passwort ist «SECRET», bitte nicht weitergeben",
        "mon mot de passe est «SECRET» pour «host»",
        "la contraseña es «SECRET»",
        "Passwort: «SECRET»",
        "пароль: «SECRET»",
        "密码是 «SECRET»",
        "la password è «SECRET»",
        "Kennwort für «user»: «SECRET»",
    ), ("«Word»«dig:4»!", "«b62:14»", "«Word»-«word»-«dig:3»")),
    Kind("log-lines", (
        "«time» DEBUG connecting user=«user» password=«SECRET» host=«host»",
        "[«service»] WARN using api_key=«SECRET» from flags",
        "level=info msg=\"login ok\" token=«SECRET» user=«user»",
        "KeyError: 'region' in {'user': '«user»', 'password': '«SECRET»'}",
        "Settings(host='«host»', db_password='«SECRET»', debug=False)",
        "Generated admin password: «SECRET»",
        "A temporary password is generated for root@localhost: «SECRET»",
    ), ("«b62:16»", "«hex:32»", "«Word»-«word»-«dig:4»")),
    Kind("log-printenv", (
        "HOME=/home/«user»\nNPM_TOKEN=«SECRET»\nPATH=/usr/bin:/bin\nSHLVL=1",
        "LANG=C.UTF-8\nADMIN_PASSWORD=«SECRET»\nPWD=/code/«service»",
        "HOSTNAME=«service»-«hex:10»\nTF_VAR_db_password=«SECRET»",
        "+ export CI_DEPLOY_PASSWORD=«SECRET»",
        "Environment=GRAFANA_ADMIN_PASSWORD=«SECRET»",
    ), ("«b62:20»", "npm_«b62:36»", "«Word»-«word»-«dig:2»")),
    Kind("talk-recovery", (
        "otpauth://totp/«company»:«user»?secret=«SECRET»&issuer=«company»",
        "TOTP_SECRET=«SECRET»",
        "MFA secret: «SECRET»",
    ), ("«b32:32»", "«b32:16»")),
)  # fmt: skip

FILES: tuple[Kind, ...] = (*DOTFILES, *CONFIG, *SOURCE, *TALK)
