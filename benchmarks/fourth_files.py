"""Secrets in files of settings: environment files, and the configuration of many tools."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["FILES"]

COUNT = 30

ENV: dict[str, str] = {
    "dotenv": r"""
‹PWVAR›=‹!pw›
‹PWVAR›="‹!pw›"
‹KEYVAR›=‹!tok›
‹KEYVAR›='‹!tok›'
# ‹app› service⏎PORT=‹n 3000 9999›⏎‹KEYVAR›=‹!tok›⏎LOG_LEVEL=info
‹SVC›_API_KEY=‹!tok›
‹SVC›_TOKEN=‹!alnum 32-40› # rotate before ‹month› ‹n 1 28›
VITE_APP_NAME=‹app›⏎DB_HOST=‹host›⏎DB_USER=‹user›⏎DB_PASS=‹!pw›⏎DB_NAME=‹app›
""",
    "export": r"""
export ‹PWVAR›='‹!pw›'
export ‹KEYVAR›=‹!tok›
export ‹SVC›_TOKEN="‹!alnum 36›"
set -gx ‹KEYVAR› ‹!tok›
set -x ‹PWVAR› '‹!pw›'
$env:‹KEYVAR› = "‹!tok›"
$Env:‹PWVAR› = '‹!pw›'
setx ‹SVC›_API_KEY "‹!alnum 40›"
set ‹PWVAR›=‹!pw›
declare -x ‹KEYVAR›="‹!tok›"
launchctl setenv ‹SVC›_API_KEY ‹!tok›
""",
    "printenv": r"""
HOSTNAME=‹app›-‹hex 10›-‹lower 5›⏎‹PWVAR›=‹!pw›⏎PWD=/app⏎HOME=/home/app⏎SHLVL=1
PATH=/usr/local/bin:/usr/bin:/bin⏎‹KEYVAR›=‹!tok›⏎LANG=C.UTF-8⏎_=/usr/bin/printenv
KUBERNETES_SERVICE_PORT=443⏎‹SVC›_SECRET_KEY=‹!tok›⏎NODE_VERSION=‹ver›
TERM=xterm-256color⏎‹PWVAR›=‹!pw›⏎LC_ALL=en_US.UTF-8
environ({'SHELL': '/bin/bash', '‹PWVAR›': '‹!pw›', 'PWD': '/srv/‹app›', 'LANG': 'C.UTF-8'})
{ NODE_ENV: 'production', PORT: '‹n 3000 9999›', ‹KEYVAR›: '‹!tok›', npm_lifecycle_event: 'start' }
declare -x LESSOPEN="| /usr/bin/lesspipe %s"⏎declare -x ‹PWVAR›="‹!pw›"⏎declare -x SHLVL="2"
""",
    "container": r"""
            "Env": [⏎                "POSTGRES_USER=‹user›",⏎                "POSTGRES_PASSWORD=‹!pw›",⏎                "PGDATA=/var/lib/postgresql/data"⏎            ],
"Env":["‹KEYVAR›=‹!tok›","PATH=/usr/local/sbin:/usr/local/bin"]
    environment:⏎      - ‹PWVAR›=‹!pw›⏎      - TZ=Europe/Berlin
    environment:⏎      ‹PWVAR›: "‹!pw›"⏎      ‹PLAINVAR›: "1"
    environment:⏎      ‹KEYVAR›: ‹!tok›
ENV ‹KEYVAR›=‹!tok›
ENV ‹PWVAR› ‹!pw›
ARG ‹SVC›_TOKEN=‹!alnum 36›
docker run -d --name ‹app› -e ‹PWVAR›=‹!pw› -p ‹n 3000 9999›:5432 postgres:16
podman run --rm --env ‹KEYVAR›='‹!tok›' ‹org›/‹app›:‹ver›
""",
    "units": r"""
[Service]⏎Environment="‹PWVAR›=‹!pw›"⏎ExecStart=/usr/bin/‹app›
Environment=‹KEYVAR›=‹!tok› LOG_LEVEL=info
fastcgi_param ‹PWVAR› "‹!pw›";
SetEnv ‹KEYVAR› "‹!tok›"
0 3 * * * ‹PWVAR›='‹!pw›' /usr/local/bin/backup.sh
<key>‹KEYVAR›</key>⏎<string>‹!tok›</string>
module.exports = { apps: [{ name: '‹app›', env: { ‹KEYVAR›: '‹!tok›' } }] }
env[‹PWVAR›] = "‹!pw›"
""",
}

CONF: dict[str, str] = {
    "yaml": r"""
database:⏎  host: ‹host›⏎  username: ‹user›⏎  password: ‹!pw›⏎  pool: ‹n 2 40›
  ‹pwname›: "‹!pw›"
  ‹keyname›: ‹!tok›
‹svc›:⏎  ‹keyname›: '‹!tok›'⏎  timeout: ‹n 5 60›
smtp: {host: ‹host›, port: 587, user: ‹mail›, pass: "‹!pw›"}
production:⏎  secret_key_base: ‹!hex 128›
    basic_auth:⏎      username: ‹user›⏎      password: '‹!pw›'
receivers:⏎- name: pager⏎  pagerduty_configs:⏎  - service_key: ‹!hex 32›
http:⏎  api_password: !!str ‹!pw›
""",
    "toml": r"""
[database]⏎user = "‹user›"⏎password = "‹!pw›"
‹keyname› = "‹!tok›"
[‹svc›]⏎‹keyname› = '‹!tok›'
auth = { username = "‹user›", password = "‹!pw›" }
[env]⏎‹KEYVAR› = "‹!tok›"
[registries.‹org›]⏎token = "Bearer ‹!alnum 32-40›"
[repository.auth]⏎http-basic.‹org› = ["‹user›", "‹!pw›"]
[connections.‹app›]⏎account = "‹lower 7›-‹lower 7›"⏎user = "‹user›"⏎password = "‹!pw›"
""",
    "ini": r"""
[‹app›]⏎user = ‹user›⏎password = ‹!pw›
[smtp]⏎smtp_user = ‹mail›⏎smtp_password = ‹!pw›
‹pwname› = ‹!pw›
‹keyname› = ‹!tok›
[security]⏎admin_user = admin⏎admin_password = ‹!pw›⏎secret_key = ‹alnum 20›
[‹svc›]⏎‹keyname›=‹!tok›
[core]⏎fernet_key = ‹!b64 32›
; ‹app› (‹env›)⏎Password=‹!pw›
""",
    "properties": r"""
spring.datasource.password=‹!pw›
spring.datasource.url=jdbc:postgresql://‹host›:5432/‹app›⏎spring.datasource.username=‹user›⏎spring.datasource.password=‹!pw›
spring.mail.password = ‹!pw›
server.ssl.key-store-password=‹!pw›
jwt.secret=‹!tok›
‹org›.‹svc›.api-key=‹!tok›
sonar.login=‹!hex 40›
storePassword=‹!pw›⏎keyAlias=upload⏎storeFile=upload.jks
signing.password=‹!pw›
camel.component.‹svc›.client-secret=‹!tok›
systemProp.gradle.wrapperPassword=‹!pw›
""",
    "json": r"""
"password": "‹!pw›",
  "‹keyname›": "‹!tok›",
{"host": "‹host›", "port": ‹n 1000 9999›, "user": "‹user›", "password": "‹!pw›"}
"Smtp": { "Host": "‹host›", "UserName": "‹mail›", "Password": "‹!pw›" },
"Jwt": {⏎    "Issuer": "https://‹host›",⏎    "Key": "‹!tok›"⏎  },
{"installed":{"client_id":"‹digits 12›-‹lower 32›.apps.googleusercontent.com","client_secret":"GOCSPX-‹!b64u 28›"}}
{"username":"‹user›","‹pwname›":"‹!pw›","remember":true}
  "sftp": {"host": "‹host›", "username": "‹user›", "passphrase": "‹!phrase›"}
""",
    "xml": r"""
<server><id>‹org›-releases</id><username>‹user›</username><password>‹!pw›</password></server>
<add key="‹title svc›ApiKey" value="‹!tok›" />
<property name="hibernate.connection.password">‹!pw›</property>
<property name="password" value="‹!pw›"/>
<Resource name="jdbc/‹app›" auth="Container" username="‹user›" password="‹!pw›" driverClassName="org.postgresql.Driver"/>
<string name="‹svc›_api_key">‹!alnum 32-40›</string>
<add name="Default" connectionString="Server=‹host›;Database=‹app›;User Id=‹user›;Password=‹!pw›;" />
<add key="ClearTextPassword" value="‹!pw›" />
<wsse:Password Type="PasswordText">‹!pw›</wsse:Password>
""",
    "packages": r"""
//npm.‹org›.dev/:_authToken=‹!uuid›
//npm.‹org›.dev/:_authToken=npm_‹!alnum 36›
//npm.‹org›.dev/:_password="‹!enc pw›"
_auth = ‹!basic›
machine ‹host› login ‹user› password ‹!pw›
machine ‹host›⏎  login ‹user›⏎  password ‹!pw›
[‹org›]⏎repository = https://‹host›/legacy/⏎username = __token__⏎password = ‹!tok›
extra-index-url = https://‹user›:‹!pw url›@‹host›/simple
:rubygems_api_key: rubygems_‹!hex 48›
{"http-basic": {"‹host›": {"username": "‹user›", "password": "‹!pw›"}}}
{"github-oauth": {"github.com": "gho_‹!alnum 36›"}}
BUNDLE_GEMS__‹SVC›__COM: "‹user›:‹!pw›"
""",
    "database": r"""
[client]⏎user=‹user›⏎password=‹!pw›
$ cat ~/.pgpass⏎‹host›:5432:‹app›:‹user›:‹!pw›
# .pgpass⏎*:*:*:‹user›:‹!pw›
requirepass ‹!pw›
masterauth ‹!pw›
ACL SETUSER ‹user› on >‹!pw› ~* +@all
CREATE USER ‹user› WITH PASSWORD '‹!pw›';
ALTER ROLE ‹user› WITH LOGIN ENCRYPTED PASSWORD '‹!pw›';
CREATE USER '‹user›'@'%' IDENTIFIED BY '‹!pw›';
GRANT ALL PRIVILEGES ON ‹app›.* TO '‹user›'@'‹ip›' IDENTIFIED BY '‹!pw›';
db.createUser({ user: "‹user›", pwd: "‹!pw›", roles: ["readWrite"] })
CREATE LOGIN ‹user› WITH PASSWORD = N'‹!pw›';
""",
    "network": r"""
[Interface]⏎Address = ‹ip›/32⏎PrivateKey = ‹!b64 32›⏎DNS = 1.1.1.1
PresharedKey = ‹!b64 32›
network={⏎⇥ssid="‹title noun›-5G"⏎⇥psk="‹!pw›"⏎⇥key_mgmt=WPA-PSK⏎}
wpa_passphrase=‹!pw›
[wifi-security]⏎key-mgmt=wpa-psk⏎psk=‹!pw›
‹ip› : PSK "‹!pw›"
# client  server  secret  IP addresses⏎‹user› * "‹!pw›" *
snmp-server community ‹!alnum 14-18› RW
enable secret 0 ‹!pw›
username ‹user› privilege 15 password 0 ‹!pw›
{"AccountTag":"‹hex 32›","TunnelSecret":"‹!b64 32›","TunnelID":"‹uuid›"}
https_proxy=http://‹user›:‹!pw url›@‹host›:3128
""",
    "agents": r"""
{"mcpServers":{"‹svc›":{"command":"npx","args":["-y","@‹org›/‹svc›-mcp"],"env":{"‹SVC›_API_KEY":"‹!tok›"}}}}
      "env": {⏎        "‹SVC›_TOKEN": "‹!alnum 36-44›"⏎      }
[mcp_servers.‹svc›]⏎command = "npx"⏎env = { "‹SVC›_API_KEY" = "‹!tok›" }
"headers": { "Authorization": "Bearer ‹!tok›" }
claude mcp add ‹svc› --env ‹SVC›_API_KEY=‹!tok› -- npx -y ‹svc›-mcp-server
claude mcp add --transport http ‹svc› https://mcp.‹org›.com/mcp --header "Authorization: Bearer ‹!tok›"
"args": ["-y", "‹svc›-mcp", "--api-key", "‹!tok›"]
{"claudeAiOauth":{"accessToken":"sk-ant-oat01-‹!b64u 86›-AA","refreshToken":"sk-ant-ort01-‹b64u 86›-AA","expiresAt":‹digits 13›}}
{"OPENAI_API_KEY": null, "tokens": {"id_token": "x", "access_token": "‹!jwt›"}}
[model_providers.‹org›]⏎name = "‹org›"⏎http_headers = { "api-key" = "‹!hex 32›" }
""",
    "git": r"""
https://‹user›:‹!pw url›@‹host›
https://oauth2:glpat-‹!b64u 20›@‹host›/‹org›/‹app›.git
origin⇥https://‹first›:ghp_‹!alnum 36›@github.com/‹org›/‹app›.git (fetch)
[remote "origin"]⏎⇥url = https://x-access-token:ghs_‹!alnum 36›@github.com/‹org›/‹app›
[http "https://‹host›/"]⏎⇥extraheader = AUTHORIZATION: basic ‹!basic›
git remote set-url origin https://‹user›:‹!alnum 32›@‹host›/‹org›/‹app›.git
fatal: unable to access 'https://‹user›:‹!pw url›@‹host›/‹org›/‹app›.git/': Could not resolve host
protocol=https⏎host=‹host›⏎username=‹user›⏎password=‹!tok›
github.com:⏎    user: ‹first›⏎    oauth_token: gho_‹!alnum 36›⏎    git_protocol: https
""",
    "mail": r"""
account ‹org›⏎host ‹host›⏎user ‹mail›⏎password ‹!pw›
$ cat /etc/postfix/sasl_passwd⏎[‹host›]:587 ‹mail›:‹!pw›
AuthUser=‹mail›⏎AuthPass=‹!pw›
EMAIL_HOST_PASSWORD = '‹!pw›'
set smtp_pass="‹!pw›"
dn: cn=admin,dc=‹org›,dc=com⏎olcRootPW: ‹!pw›
bindpw ‹!pw›
ldapsearch -x -H ldap://‹host› -D "cn=admin,dc=‹org›,dc=com" -w '‹!pw›' -b dc=‹org›,dc=com
Store ‹org›⏎IMAPStore ‹org›-remote⏎Host ‹host›⏎User ‹mail›⏎Pass ‹!pw›
ldap_default_authtok = ‹!pw›
""",
    "frameworks": r"""
SECRET_KEY = 'django-insecure-‹!lower 50›'
SECRET_KEY = "‹!tok›"
app.secret_key = '‹!tok›'
secret_key_base: "‹!hex 128›"
config.secret_key_base = '‹!hex 128›'
APP_KEY=base64:‹!b64 32›
define( 'DB_PASSWORD', '‹!pw›' );
define('AUTH_KEY',         '‹!alnum 64›');
$databases['default']['default'] = ['database' => '‹app›', 'username' => '‹user›', 'password' => '‹!pw›'];
$cfg['blowfish_secret'] = '‹!alnum 32›';
    secret_key_base: System.get_env("SKB") || "‹!b64 48›"
cookie: { secret: '‹!tok›', maxAge: ‹n 1000 90000› },
c.JupyterHub.cookie_secret = bytes.fromhex('‹!hex 64›')
""",
}

FILES: tuple[Kind, ...] = (*kinds("env", COUNT, ENV), *kinds("conf", COUNT, CONF))
