"""Where secrets stand in the files of more tools, in dumps of objects and behind odd escapes."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["TOOLS"]

EACH = 26

TOOLS = read_kinds(
    r"""
== tool-agent-settings
{"OPENAI_API_KEY":"⟦sk-proj-«b64u:40»T3BlbkFJ«b64u:40»⟧","tokens":null}
openai-api-key: ⟦sk-«an:20»T3BlbkFJ«an:20»⟧
"cline.apiKey": "⟦sk-ant-api03-«b64u:93»AA⟧"
{"tokens":{"id_token":"«hex:4»","access_token":"⟦«jwt»⟧","account_id":"«uuid»"}}
[model_providers.«svc»]↵base_url = "https://«site»/v1"↵api_key = "⟦«an:40»⟧"
"models": [{"title": "«model»", "provider": "«svc»", "apiKey": "⟦«b64u:40»⟧"}]
claude mcp add «svc» -e «ENV»_API_KEY=⟦«an:40»⟧ -- npx -y @«svc»/mcp
"headers": {"Authorization": "Bearer ⟦«b64u:48»⟧"}, "url": "https://«site»/mcp"
args: ["mcp-remote", "https://«site»/sse", "--header", "Authorization: Bearer ⟦«b64u:40»⟧"]
llm keys set openai --value ⟦sk-«an:20»T3BlbkFJ«an:20»⟧
litellm_params:↵  model: «svc»/«model»↵  api_key: ⟦«an:40»⟧
lore config set llm.api_key ⟦«b64u:48»⟧
== tool-network
network={↵  ssid="«svc»"↵  psk="⟦«pw»⟧"↵}
«host» : PSK "⟦«pw»⟧"
"«user»" * "⟦«pw»⟧" *   # /etc/ppp/chap-secrets
client «ip» {↵  secret = ⟦«an:20»⟧↵  shortname = «svc»↵}
key "«svc»-key" {↵  algorithm hmac-sha256;↵  secret "⟦«b64:43»=⟧";↵};
snmp-server community ⟦«an:14»⟧ RO
username «user» privilege 15 password 0 ⟦«pws»⟧
enable password ⟦«an:14»7⟧
nmcli con modify «svc» wifi-sec.psk "⟦«pw»⟧"
PresharedKey = ⟦«b64:42»8=⟧
auth_pass ⟦«an:12»⟧   # keepalived
stats auth «user»:⟦«an:16»⟧
wpa_passphrase=⟦«pws»⟧
//«host»/share /mnt/«noun» cifs username=«user»,password=⟦«an:18»⟧,uid=1000 0 0
[smtp.«svc».com]:587 «email»:⟦«an:18»⟧
== tool-database-files
"«user»" "⟦«pw»⟧"   # pgbouncer userlist.txt
default: &default↵  adapter: postgresql↵  username: «user»↵  password: ⟦«pws»⟧
«svc»:↵  outputs:↵    dev:↵      type: snowflake↵      user: «user»↵      password: ⟦«pws»⟧
<property name="hibernate.connection.password">⟦«pws»⟧</property>
connection: { host: '«host»', user: '«user»', password: '⟦«pw»⟧', database: '«db»' },
masterauth ⟦«b64u:32»⟧
flyway.password=⟦«pws»⟧
ALTER SYSTEM SET primary_conninfo = 'host=«host» user=replicator password=⟦«an:18»⟧';
xpack.notification.email.account.«svc».smtp.password: ⟦«pws»⟧
quarkus.datasource.password=⟦«pws»⟧
liquibase.command.password: ⟦«pws»⟧
<user name="«user»"><password>⟦«pws»⟧</password><networks><ip>::/0</ip></networks></user>
== tool-ci-files
variables:↵  DEPLOY_TOKEN: "⟦«b64u:40»⟧"
env:↵  global:↵    - «ENV»_API_KEY=⟦«an:40»⟧
withEnv(['«ENV»_PASSWORD=⟦«pws»⟧']) {
environment { «ENV»_TOKEN = '⟦«b64u:40»⟧' }
    env:↵      «ENV»_SECRET: ⟦«an:40»⟧
        run: curl -fsS -H "Authorization: token ⟦«hex:40»⟧" https://«site»/hooks/deploy
before_script:↵  - echo "⟦«pws»⟧" | docker login -u «user» --password-stdin $CI_REGISTRY
      - run: npx vercel deploy --token=⟦«an:24»⟧
- task: Npm@1↵  env:↵    NPM_AUTH: ⟦«b64u:52»⟧
bundle exec fastlane match --password ⟦«pws»⟧
== tool-infrastructure
  MasterUserPassword: ⟦«pws»⟧
param adminPassword string = '⟦«pw»⟧'
«ip» ansible_user=«user» ansible_password=⟦«pws»⟧
chpasswd:↵  list: |↵    «user»:⟦«an:16»⟧↵  expire: false
d-i passwd/user-password password ⟦«pws»⟧
rootpw --plaintext ⟦«pws»⟧
"ssh_password": "⟦«pw»⟧",
pulumi config set «svc»:dbPassword ⟦«pws»⟧ --secret
auth:↵  enablePostgresUser: true↵  postgresPassword: "⟦«pw»⟧"
"master_password": "⟦«pw»⟧",   # terraform.tfstate
administrator_login_password = "⟦«pw»⟧"
gcloud sql users set-password «user» --instance=«svc» --password='⟦«pw»⟧'
aws rds modify-db-instance --db-instance-identifier «svc» --master-user-password '⟦«pw»⟧'
az webapp config appsettings set -n «svc» --settings «ENV»_KEY=⟦«b64u:40»⟧
gcloud secrets versions add «svc» --data-file=- <<< "⟦«b64u:40»⟧"
== tool-notebooks
  "source": ["api_key = \"⟦«an:40»⟧\"\n", "client = «Class»(api_key)\n"]
In [«n:1-60»]: os.environ["«ENV»_TOKEN"] = "⟦«b64u:40»⟧"
"os.environ['«ENV»_API_KEY'] = '⟦«an:40»⟧'\n",
%env «ENV»_API_KEY=⟦«an:40»⟧
!huggingface-cli login --token ⟦hf_«an:34»⟧
wandb.login(key="⟦«hex:40»⟧")
!git clone https://«user»:⟦«an:40»⟧@github.com/«svc»/«noun»
spark.conf.set("fs.azure.account.key.«svc».dfs.core.windows.net", "⟦«b64:86»==⟧")
Out[«n:1-60»]: {'user': '«user»', 'password': '⟦«pw»⟧'}
== tool-recordings
{"name": "Authorization", "value": "Bearer ⟦«b64u:48»⟧"}
      Authorization:↵      - Bearer ⟦«b64u:48»⟧
      X-Api-Key:↵      - ⟦«an:40»⟧
@token = ⟦«b64u:48»⟧↵↵GET https://«site»/«noun»s↵Authorization: Bearer {{token}}
"auth": {"type": "basic", "basic": [{"key": "password", "value": "⟦«pw»⟧"}, {"key": "username", "value": "«user»"}]}
"postData": {"mimeType": "application/x-www-form-urlencoded", "text": "user=«user»&password=⟦«pwu»⟧"}
http POST https://«site»/«noun»s Authorization:"Token ⟦«hex:40»⟧"
fetch("https://«site»/api", {"headers": {"authorization": "Bearer ⟦«b64u:60»⟧", "accept": "*/*"}})
body: string: '{"access_token":"⟦«b64u:60»⟧","token_type":"bearer"}'
['Authorization', 'Bearer ⟦«b64u:48»⟧'],
== tool-browser-tests
driver.find_element(By.ID, "password").send_keys("⟦«pw»⟧")
await page.getByLabel('Password').fill('⟦«pw»⟧');
Input Password    id=password    ⟦«pws»⟧
fill_in 'Password', with: '⟦«pw»⟧'
await page.type('input[name="password"]', '⟦«pw»⟧');
Given I log in as "«mail»" with password "⟦«pw»⟧"
await login(page, { email: '«email»', password: '⟦«pw»⟧' });
browser_type {"element":"Password field","ref":"e«n»","text":"⟦«pw»⟧"}
cy.login('«email»', '⟦«pw»⟧')
== tool-letters
Hi «first»,↵your account is ready. Temporary password: ⟦«pw»⟧↵Please change it after the first login.
Your verification is complete. API Secret: ⟦«b64u:40»⟧. Keep it in a safe place.
Guten Tag,↵Ihr vorläufiges Kennwort lautet: ⟦«pw»⟧
Welcome to «svc»! Username: «mail» Password: ⟦«pw»⟧
The shared mailbox («email») has the password ⟦«pw»⟧ from today on.
Bonjour «first», votre mot de passe provisoire : ⟦«pw»⟧
FTP access↵Host: ftp.«svc».com↵User: «user»↵Password: ⟦«pws»⟧↵Port: 21
The archive is encrypted, the password is ⟦«pw»⟧ (sent in a separate mail)
Click here to reset: https://«site»/reset?token=⟦«b64u:43»⟧
== tool-windows
net user «user» ⟦«pws»⟧ /add
cmdkey /add:«host» /user:«user» /pass:⟦«pws»⟧
reg add "HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon" /v DefaultPassword /t REG_SZ /d ⟦«pws»⟧ /f
<AdministratorPassword><Value>⟦«pws»⟧</Value><PlainText>true</PlainText></AdministratorPassword>
$cred = New-Object System.Management.Automation.PSCredential("«user»", ("⟦«pw»⟧" | ConvertTo-SecureString -AsPlainText -Force))
schtasks /create /tn «Name» /tr «noun».exe /ru «user» /rp ⟦«pws»⟧
$Headers = @{ Authorization = "Bearer ⟦«b64u:48»⟧" }
Invoke-RestMethod -Uri https://«site»/«noun»s -Headers @{ 'X-Api-Key' = '⟦«an:40»⟧' }
Set-ADAccountPassword «user» -NewPassword (ConvertTo-SecureString '⟦«pw»⟧' -AsPlainText -Force)
signtool sign /f cert.pfx /p ⟦«pws»⟧ «noun».exe
$securePassword = "⟦«pw»⟧"
== tool-object-dumps
Settings(db_host='«host»', db_password='⟦«pw»⟧', debug=False)
{User:«user» Password:⟦«an:16»⟧ Host:«host» Port:5432}
&config.DB{User:"«user»", Password:"⟦«pw»⟧", Host:"«host»"}
#<«Class» user="«user»", password="⟦«pw»⟧">
Config { host: "«host»", token: "⟦«b64u:40»⟧", retries: «n:1-9» }
array(2) {↵  ["user"]=>↵  string(5) "«user»"↵  ["password"]=>↵  string(16) "⟦«an:16»⟧"↵}
«Class»Config[url=https://«site», apiKey=⟦«an:40»⟧, timeout=«n»]
{ user: '«user»', password: '⟦«pw»⟧', host: '«host»' }
%{username: "«user»", password: "⟦«pw»⟧", pool_size: «n:2-20»}
Namespace(user='«user»', token='⟦«b64u:40»⟧', verbose=True)
namespace=«svc» {:db {:user "«user»" :password "⟦«pw»⟧"}}
[user] => «user»↵    [password] => ⟦«pws»⟧
OrderedDict([('user', '«user»'), ('password', '⟦«pw»⟧')])
b'{"token": "⟦«hex:40»⟧"}'
== tool-odd-escapes
&quot;password&quot;:&quot;⟦«pws»⟧&quot;
\u0022apiKey\u0022:\u0022⟦«an:40»⟧\u0022
password%3D⟦«an:20»⟧%26user%3D«user»
%7B%22token%22%3A%22⟦«an:40»⟧%22%7D
{\\\"client_secret\\\":\\\"⟦«b64u:40»⟧\\\"}
"command": "curl -H \"Authorization: Bearer ⟦«b64u:48»⟧\" https://«site»"
"command": "sshpass -p '⟦«pw»⟧' ssh «user»@«ip»"
'{"password": "'"⟦«pws»⟧"'"}'
bash -c "export TOKEN=\"⟦«b64u:40»⟧\"; make «verb»"
DATABASE_URL=postgres%3A%2F%2F«user»%3A⟦«an:18»⟧%40«host»%2F«db»
"line": "    \"secret_key\": \"⟦«b64u:40»⟧\",\n"
<code>export «ENV»_TOKEN=⟦«b64u:40»⟧</code><br>
echo -e "user=«user»\npassword=⟦«an:20»⟧" > ~/.smbcredentials
""",
    EACH,
)
