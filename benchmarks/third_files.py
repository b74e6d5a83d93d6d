"""Where secrets stand in files and in what programs print: settings, code, logs, SQL, tables."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["FILES"]

EACH = 26

FILES = read_kinds(
    r"""
== file-yaml
database:↵  host: «host»↵  username: «user»↵  password: ⟦«pws»⟧↵  pool: «n:2-20»
  password: "⟦«pw»⟧"
smtp:↵  server: smtp.«svc».com↵  user: «email»↵  pass: '⟦«pw»⟧'
«svc»:↵  api_key: ⟦«an:40»⟧↵  timeout: 30
  client-secret: ⟦«b64u:40»⟧
spring:↵  datasource:↵    url: jdbc:mysql://«host»/«db»↵    username: «user»↵    password: ⟦«pws»⟧
auth:↵  secret: >-↵    ⟦«b64:60»⟧
admin_token: ⟦«hex:48»⟧
secrets:↵  - name: «noun»↵    value: ⟦«b64u:32»⟧
wifi:↵  ssid: "«svc»"↵  password: "⟦«pw»⟧"
production:↵  secret_key_base: ⟦«hex:128»⟧
ansible_ssh_pass: ⟦«pws»⟧
  mysql_root_password: ⟦«pws»⟧  # TODO move to vault
password: |↵  ⟦«pw»⟧
credentials: {user: «user», password: ⟦«pws»⟧}
== file-toml-ini
password = "⟦«pw»⟧"
[database]↵user = «user»↵password = ⟦«pws»⟧
api_token = "⟦«hex:40»⟧"
[smtp]↵enabled = true↵user = «email»↵passwd = `⟦«pw»⟧`
secret_key = ⟦«an:20»«num:2»⟧
[default]↵host = https://«svc».cloud.databricks.com↵token = ⟦dapi«hex:32»⟧
admin_passwd = ⟦«pws»⟧
requirepass ⟦«b64u:32»⟧
app.datasource.password=⟦«pws»⟧
spring.mail.password=⟦«pws»⟧
jwt.secret=⟦«b64u:64»⟧
rabbitmq.password = ⟦«pws»⟧
auth_key = "⟦«b64u:43»⟧"
[rclone-«svc»]↵type = s3↵access_key_id = «up:20»↵secret_access_key = ⟦«b64:40»⟧
define('DB_PASSWORD', '⟦«pw»⟧');
define('AUTH_KEY',         '⟦«an:20»|«an:20»+«an:20»⟧');
snmp_community_string=⟦«an:14»⟧
bindpw ⟦«pws»⟧
server.ssl.key-store-password=⟦«pws»⟧
== file-json
  "password": "⟦«pw»⟧",
{"host": "«host»", "port": «port», "user": "«user»", "password": "⟦«pw»⟧"}
"apiKey": "⟦«an:39»⟧",
{"mcpServers": {"«svc»": {"command": "npx", "args": ["-y", "@«svc»/mcp"], "env": {"«ENV»_API_KEY": "⟦«b64u:40»⟧"}}}}
"env": {"«ENV»_TOKEN": "⟦«an:36»⟧"}
{"name": "«ENV»_SECRET", "value": "⟦«b64:44»⟧", "type": "secret"}
"authToken":"⟦«hex:40»⟧"
"clientSecret" : "⟦«b64u:40»⟧"
{"key":"DB_PASSWORD","value":"⟦«pw»⟧","enabled":true}
"connection": {"user": "«user»", "passwd": "⟦«pw»⟧", "db": "«db»"}
"bearer": [{"key": "token", "value": "⟦«b64u:64»⟧", "type": "string"}]
"args": ["--db-user", "«user»", "--db-password", "⟦«pws»⟧"]
"webhookSecret": "⟦«hex:40»⟧", "retries": «n:1-5»
"encryptionKey": "⟦«hex:64»⟧"
== file-json-in-json
{"type":"tool_result","content":"{\"password\":\"⟦«pw»⟧\",\"user\":\"«user»\"}"}
{"body": "{\"client_secret\": \"⟦«b64u:40»⟧\", \"grant_type\": \"client_credentials\"}"}
"SecretString": "{\"username\":\"«user»\",\"password\":\"⟦«pw»⟧\",\"engine\":\"postgres\",\"host\":\"«host»\"}"
{"input":{"command":"export «ENV»_API_KEY=\"⟦«an:40»⟧\" && make «verb»"}}
{"content":"{\\\"api_key\\\":\\\"⟦«hex:32»⟧\\\"}"}
{"stdout":"DB_HOST=«host»\nDB_PASSWORD=⟦«pws»⟧\nDB_NAME=«db»\n","exit":0}
{"new_string":"const password = '⟦«pw»⟧';\nconst host = '«host»';"}
{"event":"{\"headers\":{\"authorization\":\"Bearer ⟦«b64u:48»⟧\"},\"path\":\"/«noun»s\"}"}
"args": "[\"-c\",\"mysql -u«user» -p⟦«an:16»⟧ «db»\"]"
{"text":"sure, the password is ⟦«pws»⟧\nlet me know"}
== file-xml-html
<password>⟦«pws»⟧</password>
<property name="password" value="⟦«pws»⟧"/>
<entry key="«noun».secret">⟦«b64u:32»⟧</entry>
<string name="«svc»_api_key">⟦AIzaSy«b64u:33»⟧</string>
<add key="SmtpPassword" value="⟦«pws»⟧" />
<key>APISecret</key>↵<string>⟦«an:40»⟧</string>
<wsse:Password Type="PasswordText">⟦«pws»⟧</wsse:Password>
<Resource name="jdbc/«db»" username="«user»" password="⟦«pws»⟧" url="jdbc:mysql://«host»/«db»"/>
<meta-data android:name="com.«svc».API_KEY" android:value="⟦«an:39»⟧"/>
<property>↵  <name>fs.s3a.secret.key</name>↵  <value>⟦«b64:40»⟧</value>↵</property>
<hudson.util.Secret>⟦«an:24»⟧</hudson.util.Secret>
== file-dotenv-dump
PATH=/usr/local/bin:/usr/bin↵HOME=/home/«user»↵«ENV»_SECRET=⟦«an:32»⟧↵LANG=C.UTF-8
NODE_ENV=production↵PORT=«port»↵DB_PASS="⟦«pw»⟧"↵LOG_LEVEL=info
$ env | grep -i «noun»↵«ENV»_API_TOKEN=⟦«hex:40»⟧
$ docker exec «svc» env↵HOSTNAME=«hex:12»↵POSTGRES_PASSWORD=⟦«pws»⟧↵PGDATA=/var/lib/postgresql/data
DB_HOST=«host»↵DB_USER=«user»↵DB_PWD=⟦«pws»⟧
# prod↵«ENV»_KEY=⟦«b64u:40»⟧
"Env": ["PATH=/usr/bin", "MYSQL_PASSWORD=⟦«pws»⟧", "TZ=UTC"]
«ENV»_ACCESS_TOKEN=⟦«b64u:64»⟧
=== «svc» Config Vars↵DATABASE_PASSWORD:  ⟦«pws»⟧↵RAILS_ENV:          production
Container «svc»-1 env: REDIS_PASSWORD=⟦«an:24»⟧ TZ=UTC
== code-python
PASSWORD = "⟦«pw»⟧"
conn = psycopg2.connect(host="«host»", user="«user»", password="⟦«pw»⟧", dbname="«db»")
api_key: str = "⟦«an:40»⟧"
session.auth = ("«user»", "⟦«pw»⟧")
app.config["SECRET_KEY"] = "⟦«b64u:40»⟧"
requests.get(url, auth=HTTPBasicAuth("«user»", "⟦«pw»⟧"), timeout=«n:5-60»)
server.login("«email»", "⟦«pw»⟧")
ssh.connect("«ip»", username="«user»", password="⟦«pw»⟧")
TOKEN = os.getenv("«ENV»_TOKEN", "⟦«hex:40»⟧")
DATABASES = {"default": {"NAME": "«db»", "USER": "«user»", "PASSWORD": "⟦«pw»⟧"}}
client = «Class»Client(base_url="https://«site»", token="⟦«b64u:40»⟧")
ADMIN_CREDENTIALS = {"user": "«user»", "pass": "⟦«pw»⟧"}
jwt.encode(payload, "⟦«b64u:43»⟧", algorithm="HS256")
    password = '⟦«pw»⟧'  # FIXME hardcoded
Fernet(b"⟦«b64u:43»=⟧")
hmac.new(b"⟦«an:32»⟧", body, hashlib.sha256).hexdigest()  # webhook signing secret
if password == "⟦«pw»⟧":
r = redis.Redis(host="«host»", port=6379, password="⟦«an:24»⟧")
== code-javascript
const password = '⟦«pw»⟧';
const apiKey = "⟦«an:40»⟧";
const pool = new Pool({ user: '«user»', host: '«host»', password: '⟦«pw»⟧', port: 5432 });
export const JWT_SECRET = '⟦«b64u:43»⟧';
app.use(session({ secret: '⟦«an:32»⟧', resave: false }));
nodemailer.createTransport({ host: 'smtp.«svc».com', auth: { user: '«email»', pass: '⟦«pw»⟧' } })
jwt.sign({ id: user.id }, "⟦«b64u:40»⟧", { expiresIn: '1h' })
axios.defaults.headers.common['Authorization'] = 'Bearer ⟦«b64u:60»⟧';
const token = process.env.«ENV»_TOKEN || '⟦«hex:40»⟧';
await page.fill('#password', '⟦«pw»⟧');
mongoose.connect('mongodb://«user»:⟦«pwu»⟧@«host»/«db»');
cy.get('[name=password]').type('⟦«pw»⟧')
const client = new Twilio('AC«hex:32»', '⟦«hex:32»⟧');
  clientSecret: "⟦«b64u:40»⟧",
stripe = require('stripe')('⟦sk_live_«an:24»⟧');
await signIn({ username: '«mail»', password: '⟦«pw»⟧' });
var adminPassword="⟦«pw»⟧",adminUser="«user»";
== code-jvm-dotnet
private static final String PASSWORD = "⟦«pw»⟧";
DriverManager.getConnection("jdbc:mysql://«host»/«db»", "«user»", "⟦«pw»⟧");
String apiKey = "⟦«an:40»⟧";
props.put("password", "⟦«pw»⟧");
dataSource.setPassword("⟦«pw»⟧");
val token = "⟦«b64u:43»⟧"
private const string ApiSecret = "⟦«b64:44»⟧";
var credentials = new NetworkCredential("«user»", "⟦«pw»⟧");
buildConfigField "String", "API_KEY", "\"⟦«an:39»⟧\""
storePassword "⟦«pw»⟧"
    keyPassword = "⟦«pw»⟧"
.withPassword("⟦«pw»⟧")
new UsernamePasswordCredentials("«user»", "⟦«pw»⟧")
@Value("${«noun».secret:⟦«an:32»⟧}")
services.AddJwt(o => o.SecretKey = "⟦«b64u:43»⟧");
Keys.hmacShaKeyFor("⟦«an:44»⟧".getBytes())
== code-other 40
password := "⟦«pw»⟧"
const apiToken = "⟦«hex:40»⟧" // «noun» service
cfg := mysql.Config{User: "«user»", Passwd: "⟦«pw»⟧", Addr: "«host»:3306"}
req.SetBasicAuth("«user»", "⟦«pw»⟧")
let api_key = "⟦«an:40»⟧".to_string();
const SECRET: &[u8] = b"⟦«an:32»⟧";
let token: String = "⟦«b64u:43»⟧"
$password = '⟦«pw»⟧';
$pdo = new PDO('mysql:host=«host»;dbname=«db»', '«user»', '⟦«pw»⟧');
mysqli_connect("«host»", "«user»", "⟦«pw»⟧", "«db»");
'password' => '⟦«pw»⟧',
  password: "⟦«pw»⟧",   # «db».rb
config.secret_key = '⟦«hex:128»⟧'
ActiveRecord::Base.establish_connection(adapter: 'mysql2', username: '«user»', password: '⟦«pw»⟧')
#define WIFI_PASSWORD "⟦«pw»⟧"
const char* password = "⟦«pw»⟧";
std::string api_key{"⟦«an:40»⟧"};
Sys.setenv(«ENV»_API_KEY = "⟦«an:40»⟧")
config :«svc», «Class».Repo, username: "«user»", password: "⟦«pw»⟧", hostname: "«host»"
$Password = ConvertTo-SecureString "⟦«pw»⟧" -AsPlainText -Force
variable "db_password" {↵  type    = string↵  default = "⟦«pw»⟧"↵}
resource "aws_db_instance" "«noun»" {↵  username = "«user»"↵  password = "⟦«pw»⟧"↵}
let password = "⟦«pw»⟧" // «first»'s test account, real one
local token = "⟦«b64u:40»⟧"
my $dbh = DBI->connect("dbi:Pg:dbname=«db»", "«user»", "⟦«pw»⟧");
== file-sql
CREATE USER «user» WITH PASSWORD '⟦«pw»⟧';
ALTER USER '«user»'@'%' IDENTIFIED BY '⟦«pw»⟧';
ALTER ROLE «user» WITH LOGIN PASSWORD '⟦«pw»⟧';
GRANT ALL ON «db».* TO '«user»'@'localhost' IDENTIFIED BY '⟦«pw»⟧';
CREATE LOGIN «user» WITH PASSWORD = '⟦«pw»⟧';
SET PASSWORD FOR '«user»'@'localhost' = '⟦«pw»⟧';
INSERT INTO users (email, password) VALUES ('«email»', '⟦«pw»⟧');
UPDATE accounts SET password='⟦«pw»⟧' WHERE id=«n»;
INSERT INTO api_tokens (user_id, token) VALUES («n», '⟦«hex:40»⟧');
CREATE SECRET («svc»_s3 TYPE s3, KEY_ID 'AKIA«b32:16»', SECRET '⟦«b64:40»⟧');
CREATE SUBSCRIPTION «noun» CONNECTION 'host=«host» user=«user» password=⟦«an:16»⟧' PUBLICATION «noun»;
SELECT dblink_connect('host=«host» user=«user» password=⟦«an:18»⟧ dbname=«db»');
ATTACH 'host=«host» user=«user» password=⟦«an:18»⟧' AS «noun» (TYPE postgres);
CREATE USER «user» IDENTIFIED BY "⟦«pw»⟧" DEFAULT TABLESPACE users;
== file-tables
| «svc» | «user» | password | ⟦«pws»⟧ |
| Service | Login | Password |↵|---|---|---|↵| «svc» | «user» | ⟦«pws»⟧ |
username,password,role↵«mail»,⟦«pws»⟧,admin
 id | email | api_token↵----+-------+----------↵ «n» | «email» | ⟦«hex:40»⟧
Key            Value↵---            -----↵password       ⟦«pws»⟧↵username       «user»
KEY                 VALUE↵«ENV»_TOKEN    ⟦«b64u:40»⟧
name⇥url⇥username⇥password↵«svc»⇥https://«site»⇥«email»⇥⟦«pws»⟧
│ DB_PASSWORD │ ⟦«pws»⟧ │
*************************** 1. row ***************************↵      id: «n»↵   email: «email»↵password: ⟦«pws»⟧
Key                Value↵token              ⟦hvs.CAESI«b64u:90»⟧↵token_accessor     «an:24»
== out-ci-log
«date»T«time».«num:7»Z   «ENV»_TOKEN: ⟦«b64u:40»⟧
+ export DEPLOY_KEY=⟦«b64u:40»⟧
++ curl -sf -H 'Authorization: Bearer ⟦«b64u:48»⟧' https://«site»/deploy
[Pipeline] sh↵+ docker login -u «user» -p ⟦«pws»⟧ registry.«svc».com
$ npm config set //registry.npmjs.org/:_authToken=⟦npm_«an:36»⟧
##[debug]Evaluating: secrets.«ENV»↵##[debug]=> '⟦«an:40»⟧'
WARNING! Using --password via the CLI is insecure. (docker login -u «user» --password ⟦«pws»⟧)
#12 [build 4/7] RUN echo "//npm.«svc».com/:_authToken=⟦«b64u:36»⟧" > .npmrc
Step 5/9 : ARG «ENV»_PASSWORD=⟦«pws»⟧
TASK [«noun»] ok: [«ip»] => {"msg": "admin password: ⟦«pws»⟧"}
aws_db_instance.«noun»: Creating... (password: "⟦«pw»⟧")
db_password = "⟦«pw»⟧"   # terraform output -raw
== out-app-log
«ts» DEBUG «svc».auth login attempt user=«mail» password=⟦«pws»⟧ ip=«ip»
[«date» «time»] local.INFO: request {"email":"«email»","password":"⟦«pw»⟧"}
Generated admin password: ⟦«an:16»7⟧
«ts» [Note] A temporary password is generated for root@localhost: ⟦«pw»⟧
Password for the elastic user (reset with `bin/elasticsearch-reset-password -u elastic`): ⟦«an:20»⟧
To access the server, open: http://localhost:8888/lab?token=⟦«hex:48»⟧
Parameters: {"user"=>{"email"=>"«email»", "password"=>"⟦«pw»⟧"}}
level=debug msg="using token" token=⟦«b64u:40»⟧ component=«noun»
Your new API key is ⟦«an:40»⟧. It will not be shown again.
Root password: ⟦«pws»⟧ (change it after the first login)
Initial admin password written: ⟦«hex:32»⟧
>>> settings.«ENV»_SECRET↵'⟦«b64u:43»⟧'
(«svc») http: sending header "X-Api-Key: ⟦«an:40»⟧"
user=«user» db=«db» conninfo="host=«host» password=⟦«an:16»⟧"
Unseal Key 1: ⟦«b64:43»=⟧
Initial Root Token: ⟦hvs.«an:24»⟧
Recovery code: ⟦«up:5»-«up:5»-«up:5»-«up:5»⟧
== out-traceback
sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server failed↵(Background: postgresql://«user»:⟦«pwu»⟧@«host»/«db»)
  File "/app/«noun».py", line «n», in connect↵    conn = connect(user="«user»", password="⟦«pw»⟧")
    at login («noun».js:«n»:«n:1-80») { config: { headers: { Authorization: 'Bearer ⟦«b64u:48»⟧' } } }
openai.AuthenticationError: Error code: 401 - Incorrect API key provided: ⟦sk-proj-«an:20»T3BlbkFJ«an:20»⟧
pymongo.errors.ServerSelectionTimeoutError: mongodb://«user»:⟦«pwu»⟧@«host»:27017 timed out
Exception in thread "main" java.sql.SQLException: url=jdbc:mysql://«host»/«db»?user=«user»&password=⟦«pwu»⟧
E       AssertionError: assert {'token': '⟦«hex:40»⟧'} == {'token': None}
redis.exceptions.ConnectionError: Error 111 connecting to redis://:⟦«an:32»⟧@«host»:6379
panic: dial postgres://«user»:⟦«pwu»⟧@«host»/«db»: no route to host
subprocess.CalledProcessError: Command '['mysql', '-u«user»', '-p⟦«pws»⟧', '«db»']' returned non-zero exit status 1.
== out-diff
-password: ⟦«pws»⟧↵+password: ${DB_PASSWORD}
@@ -«n»,3 +«n»,3 @@↵ const host = '«host»';↵-const apiKey = '⟦«an:40»⟧';↵+const apiKey = process.env.API_KEY;
+    "apiKey": "⟦«b64u:40»⟧",
-  secret_key = "⟦«an:40»⟧"↵+  secret_key = var.secret_key
+«ENV»_TOKEN=⟦«hex:40»⟧
 DB_USER=«user»↵-DB_PASSWORD=⟦«pws»⟧↵+DB_PASSWORD=
~ password = "⟦«pw»⟧" -> (sensitive value)
+machine «site» login «user» password ⟦«pws»⟧
- auth: ('«user»', '⟦«pw»⟧')
== out-otp-and-mnemonics
otpauth://totp/«svc»:«email»?secret=⟦«b32:32»⟧&issuer=«svc»
TOTP secret: ⟦«b32:32»⟧
Scan the code or enter this setup key by hand: ⟦«b32:32»⟧
MFA_SECRET=⟦«b32:26»⟧
seed phrase: ⟦«stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem»⟧
MNEMONIC="⟦«stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem» «stem»⟧"
PRIVATE_KEY=0x⟦«hex:64»⟧
wallet private key: ⟦0x«hex:64»⟧
npx hardhat run deploy.js --private-key ⟦0x«hex:64»⟧
== out-shell-session
$ read -s PW; echo $PW↵⟦«pw»⟧
$ cat db_password.txt↵⟦«pw»⟧
$ pass show «svc»/«user»↵⟦«pw»⟧
$ aws secretsmanager get-secret-value --secret-id «svc»/db --query SecretString --output text↵⟦«pw»⟧
$ gh auth token↵⟦gho_«an:36»⟧
$ vault kv get -field=password secret/«svc»↵⟦«pw»⟧
$ openssl rand -hex 32   # new JWT secret↵⟦«hex:64»⟧
$ gcloud auth print-access-token↵⟦ya29.a0A«b64u:160»⟧
$ op read "op://Private/«svc»/password"↵⟦«pw»⟧
$ echo $«ENV»_TOKEN↵⟦«b64u:40»⟧
$ heroku auth:token↵⟦«uuid»⟧
$ security find-generic-password -s «svc» -w↵⟦«pw»⟧
$ az account get-access-token --query accessToken -o tsv↵⟦«jwt»⟧
Enter password: ⟦«pw»⟧
""",
    EACH,
)
