"""Where secrets stand: settings of real tools, commands, requests, addresses and key blocks."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["PLACES"]

EACH = 26

PLACES = read_kinds(
    r"""
== place-bare-known-form
ghp_⟦«an:36»⟧
⟦sk-ant-api03-«b64u:93»AA⟧
`⟦xoxb-«num:12»-«num:13»-«an:24»⟧`
⟦glpat-«b64u:20»⟧
> ⟦sk_live_51«an:97»⟧
⟦SG.«b64u:22».«b64u:43»⟧
⟦AIzaSy«b64u:33»⟧
⟦npm_«an:36»⟧
⟦hf_«an:34»⟧
  ⟦github_pat_11«up:20»_«an:59»⟧
⟦sk-proj-«b64u:74»T3BlbkFJ«b64u:74»⟧
== place-aws-credentials
[default]↵aws_access_key_id = AKIA«b32:16»↵aws_secret_access_key = ⟦«b64:40»⟧↵region = «cloud»
[«svc»-prod]↵aws_access_key_id=ASIA«b32:16»↵aws_secret_access_key=⟦«b64:40»⟧
{"Credentials": {"AccessKeyId": "ASIA«b32:16»", "SecretAccessKey": "⟦«b64:40»⟧", "Expiration": "«ts»"}}
AccessKeyId: AKIA«b32:16»↵SecretAccessKey: ⟦«b64:40»⟧↵Status: Active
AWS Secret Access Key [None]: ⟦«b64:40»⟧
provider "aws" {↵  region     = "«cloud»"↵  access_key = "AKIA«b32:16»"↵  secret_key = "⟦«b64:40»⟧"↵}
boto3.client("s3", aws_access_key_id="AKIA«b32:16»", aws_secret_access_key="⟦«b64:40»⟧")
new S3Client({ credentials: { accessKeyId: 'AKIA«b32:16»', secretAccessKey: '⟦«b64:40»⟧' } })
"«user»","AKIA«b32:16»","⟦«b64:40»⟧"   # User name,Access key ID,Secret access key
== place-url-credentials 40
postgres://«user»:⟦«pwu»⟧@«host»:5432/«db»
DATABASE_URL=postgresql://«user»:⟦«pwu»⟧@«host»/«db»?sslmode=require
mysql://«user»:⟦«pwu»⟧@«host»:3306/«db»
mongodb+srv://«user»:⟦«pwu»⟧@cluster0.«low:5».mongodb.net/«db»?retryWrites=true
redis://:⟦«an:32»⟧@«host»:6379/0
rediss://default:⟦AX«an:50»⟧@«adj»-«noun»-«num:5».upstash.io:6379
amqp://«user»:⟦«pwu»⟧@«host»:5672/%2f
CELERY_BROKER_URL: amqps://«user»:⟦«pwu»⟧@«host»/«db»
smtp://«mail»%40«svc».com:⟦«pwu»⟧@smtp.«svc».com:587
ftp://«user»:⟦«pwu»⟧@ftp.«svc».com/«noun»s/
https://«user»:⟦«pwu»⟧@«site»/packages/pypi/simple
sqlalchemy.url = mysql+pymysql://«user»:⟦«pwu»⟧@«host»/«db»
HTTPS_PROXY=http://«user»:⟦«pwu»⟧@proxy.«svc».com:3128
could not connect to postgres://«user»:⟦«pwu»⟧@«host»:5432/«db»: connection refused
jdbc:postgresql://«host»:5432/«db»?user=«user»&password=⟦«pwu»⟧
ldap://cn=admin:⟦«pwu»⟧@«host»:389
engine = create_engine("postgresql+asyncpg://«user»:⟦«pwu»⟧@«host»/«db»", pool_size=«n:2-20»)
== place-git-remote
origin⇥https://x-access-token:⟦ghs_«an:36»⟧@github.com/«svc»/«noun».git (push)
git clone https://oauth2:⟦glpat-«b64u:20»⟧@gitlab.com/«svc»/«noun».git
git remote set-url origin https://«user»:⟦«an:20»⟧@«site»/«svc»/«noun».git
fatal: unable to access 'https://«user»:⟦«pwu»⟧@git.«svc».com/«noun».git/': The requested URL returned error: 403
[remote "origin"]↵⇥url = https://«user»:⟦ATBB«an:32»⟧@bitbucket.org/«svc»/«noun».git
https://«user»:⟦«an:40»⟧@git.«svc».com
[url "https://«user»:⟦«an:20»⟧@«site»/"]↵⇥insteadOf = https://«site»/
-e git+https://⟦ghp_«an:36»⟧@github.com/«svc»/«noun».git@v«ver»#egg=«noun»
== place-dotnet-connection
Server=«host»;Database=«db»;User Id=«user»;Password=⟦«pws»⟧;TrustServerCertificate=True
"DefaultConnection": "Server=tcp:«svc».database.windows.net,1433;Initial Catalog=«db»;User ID=«user»;Password=⟦«pws»⟧;Encrypt=True;"
Data Source=«host»;Initial Catalog=«db»;uid=«user»;pwd=⟦«pws»⟧
Host=«host»;Port=5432;Username=«user»;Password=⟦«pws»⟧;Database=«db»
<add name="«Name»Context" connectionString="Data Source=«host»;User ID=«user»;Password=⟦«pws»⟧" providerName="System.Data.SqlClient" />
Driver={ODBC Driver 18 for SQL Server};Server=«host»;UID=«user»;PWD=⟦«pws»⟧;
DefaultEndpointsProtocol=https;AccountName=«svc»store;AccountKey=⟦«b64:86»==⟧;EndpointSuffix=core.windows.net
Endpoint=sb://«svc».servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=⟦«b64:43»=⟧
HostName=«svc».azure-devices.net;DeviceId=«noun»;SharedAccessKey=⟦«b64:43»=⟧
host=«host» port=5432 dbname=«db» user=«user» password=⟦«pws»⟧ connect_timeout=10
== place-netrc-and-pass-files
machine «site»↵  login «user»↵  password ⟦«pws»⟧
machine github.com login «user» password ⟦ghp_«an:36»⟧
default login «user» password ⟦«pws»⟧
«host»:5432:«db»:«user»:⟦«pwu»⟧    # ~/.pgpass
$ cat ~/.pgpass↵«host»:5432:*:«user»:⟦«pwu»⟧
[client]↵user=«user»↵password=⟦«pws»⟧
[client]↵user = «user»↵password = "⟦«pw»⟧"↵host = «host»
username=«user»↵password=⟦«pws»⟧↵domain=«svc»
== place-package-managers
//registry.npmjs.org/:_authToken=⟦npm_«an:36»⟧
//npm.«svc».com/:_authToken=⟦«b64:44»⟧
//npm.«svc».com/:_password=⟦«pw64»⟧
_auth=⟦«basic»⟧
npmAuthToken: "⟦«uuid»⟧"
[pypi]↵username = __token__↵password = ⟦pypi-AgEIcHlwaS5vcmcC«b64u:140»⟧
<server>↵  <id>«svc»-releases</id>↵  <username>«user»</username>↵  <password>⟦«pws»⟧</password>↵</server>
"http-basic": { "repo.«svc».com": { "username": "«user»", "password": "⟦«pws»⟧" } }
:rubygems_api_key: ⟦rubygems_«hex:48»⟧
[registry]↵token = "⟦cio«an:32»⟧"
<packageSourceCredentials><«svc»><add key="Username" value="«user»" /><add key="ClearTextPassword" value="⟦«pws»⟧" /></«svc»></packageSourceCredentials>
mavenPassword=⟦«pws»⟧
signing.password=⟦«pws»⟧
poetry config http-basic.«svc» «user» ⟦«pws»⟧
== place-docker-and-kube
{"auths": {"https://index.docker.io/v1/": {"auth": "⟦«basic»⟧"}}}
{"auths":{"ghcr.io":{"username":"«user»","password":"⟦ghp_«an:36»⟧"}}}
apiVersion: v1↵kind: Secret↵metadata:↵  name: «svc»-db↵type: Opaque↵data:↵  password: ⟦«pw64»⟧
kind: Secret↵stringData:↵  db-password: "⟦«pw»⟧"
kind: Secret↵metadata:↵  name: «noun»↵stringData:↵  api-token: ⟦«b64u:40»⟧
users:↵- name: «svc»-admin↵  user:↵    token: ⟦«jwt»⟧
users:↵- name: kubernetes-admin↵  user:↵    client-certificate-data: LS0tLS1CRUdJTi«b64:60»↵    client-key-data: ⟦LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo«b64:400»⟧
token:      ⟦eyJhbGciOiJSUzI1NiIsImtpZCI6I«b64u:40».eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50«b64u:200».«b64u:342»⟧
$ kubectl get secret «svc» -o jsonpath='{.data.password}' | base64 -d↵⟦«pw»⟧
kubeadm join «ip»:6443 --token ⟦«low:6».«low:16»⟧ --discovery-token-ca-cert-hash sha256:«hex:64»
    environment:↵      POSTGRES_USER: «user»↵      POSTGRES_PASSWORD: ⟦«pws»⟧
      - name: «ENV»_PASSWORD↵        value: "⟦«pw»⟧"
docker swarm join --token ⟦SWMTKN-1-«low:50»-«low:25»⟧ «ip»:2377
== place-command-flags 40
mysql -u «user» -p⟦«pws»⟧ -h «host» «db»
mysqldump --user=«user» --password=⟦«pws»⟧ «db» > /tmp/«db».sql
PGPASSWORD=⟦«pws»⟧ psql -h «host» -U «user» -d «db» -c 'select 1'
docker login -u «user» -p ⟦«pws»⟧ registry.«svc».com
sshpass -p '⟦«pw»⟧' ssh «user»@«ip»
redis-cli -h «host» -a ⟦«pws»⟧ ping
curl -u «user»:⟦«pwu»⟧ https://«site»/api/«noun»s
curl --user '«user»:⟦«pw»⟧' -X POST https://«site»/«noun»
az login --service-principal -u «uuid» -p ⟦«an:3»8Q~«b64u:34»⟧ --tenant «uuid»
vault login ⟦hvs.«b64u:90»⟧
echo '⟦«pw»⟧' | sudo -S systemctl restart «svc»
echo "⟦«pws»⟧" | docker login --username «user» --password-stdin
echo "«user»:⟦«pws»⟧" | chpasswd
openssl enc -aes-256-cbc -d -in «noun».enc -k '⟦«pw»⟧'
openssl pkcs12 -export -out «noun».p12 -inkey key.pem -passout pass:⟦«pws»⟧
keytool -genkey -keystore «noun».jks -storepass ⟦«pws»⟧ -alias «noun»
mongosh "mongodb://«host»/«db»" --username «user» --password '⟦«pw»⟧'
net use Z: \\«host»\share /user:«user» ⟦«pws»⟧
wget --http-user=«user» --http-password='⟦«pw»⟧' https://«site»/«noun».zip
ansible-playbook site.yml -e "ansible_become_password=⟦«pws»⟧"
helm upgrade «svc» ./chart --set postgresql.auth.password=⟦«pws»⟧
htpasswd -bc .htpasswd «user» ⟦«pws»⟧
smbclient //«host»/«noun» -U '«user»%⟦«an:14»⟧'
zip -P '⟦«pw»⟧' -r «noun».zip «dir»
restic -r s3:s3.amazonaws.com/«svc» --password-command 'echo ⟦«pws»⟧' snapshots
terraform apply -var="db_password=⟦«pws»⟧" -auto-approve
stripe listen --api-key ⟦sk_test_«an:24»⟧
nmcli device wifi connect «svc»-guest password '⟦«pw»⟧'
linear-cli auth --token ⟦lin_api_«an:40»⟧
sqlcmd -S «host» -U sa -P '⟦«pw»⟧' -Q "SELECT @@VERSION"
ldapsearch -x -H ldap://«host» -D "cn=admin,dc=«svc»,dc=com" -w ⟦«pws»⟧
New-Object PSCredential('«user»', (ConvertTo-SecureString '⟦«pw»⟧' -AsPlainText -Force))
== place-http-headers 40
Authorization: Basic ⟦«basic»⟧
> authorization: Bearer ⟦«jwt»⟧
Authorization: token ⟦«hex:40»⟧
X-Api-Key: ⟦«an:40»⟧
x-api-key: ⟦«hex:32»⟧
Private-Token: ⟦glpat-«b64u:20»⟧
X-Auth-Token: ⟦«b64u:32»⟧
api-key: ⟦«hex:32»⟧
Ocp-Apim-Subscription-Key: ⟦«hex:32»⟧
X-Vault-Token: ⟦s.«an:24»⟧
DD-API-KEY: ⟦«hex:32»⟧
Authorization: ApiKey ⟦«b64:60»==⟧
Proxy-Authorization: Basic ⟦«basic»⟧
curl -H 'X-Auth-Key: ⟦«hex:37»⟧' -H 'X-Auth-Email: «email»' https://api.cloudflare.com/client/v4/zones
curl -X POST https://«site»/graphql -H "Authorization: Bearer ⟦«b64u:43»⟧" -d @query.json
headers = {"Authorization": "Bearer ⟦«an:48»⟧", "Accept": "application/json"}
headers: { 'x-api-key': '⟦«an:40»⟧', 'content-type': 'application/json' }
"headers": {"host": "«site»", "authorization": "Basic ⟦«basic»⟧", "accept": "*/*"}
Authorization: Digest username="«user»", password="⟦«pw»⟧"
Authorization: Token token=⟦«hex:32»⟧
-H 'apikey: ⟦«jwt»⟧'
GET /v1/«noun»s HTTP/1.1↵Host: «site»↵User-Agent: curl/8.5.0↵Authorization: Bearer ⟦«b64u:64»⟧↵Accept: */*
== place-cookies
Set-Cookie: session=⟦«b64u:64»⟧; Path=/; HttpOnly; Secure; SameSite=Lax
Cookie: sessionid=⟦«low:32»⟧; csrftoken=«an:32»
Set-Cookie: connect.sid=⟦s%3A«b64u:32».«an:43»⟧; Path=/; HttpOnly
Cookie: _ga=GA1.1.«num:9».«num:10»; next-auth.session-token=⟦«jwt»⟧
curl -b 'JSESSIONID=⟦«HEX:32»⟧' https://«site»/«noun»
Cookie: PHPSESSID=⟦«low:26»⟧; theme=dark
set-cookie: access_token=⟦«jwt»⟧; HttpOnly; Max-Age=3600
Cookie: laravel_session=⟦eyJpdiI6I«b64:180»%3D⟧; locale=en
Cookie: user_session=⟦«b64u:48»⟧; logged_in=yes
document.cookie = "auth_token=⟦«hex:48»⟧; path=/"
#HttpOnly_.«site»⇥TRUE⇥/⇥TRUE⇥17«num:8»⇥session_token⇥⟦«b64u:60»⟧
remember_user_token=⟦W1sxXSwi«b64u:60»--«hex:40»⟧; path=/; HttpOnly
== place-signed-urls
https://«svc».s3.«cloud».amazonaws.com/«noun».zip?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ASIA«b32:16»%2F20260«n:101-930»%2F«cloud»%2Fs3%2Faws4_request&X-Amz-Date=20260«n:101-930»T«num:6»Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature=⟦«hex:64»⟧
https://«svc».blob.core.windows.net/«noun»s/«noun».json?sv=2023-11-03&st=«date»T00%3A00%3A00Z&se=2027-01-01&sr=b&sp=r&sig=⟦«an:40»%2B«an:2»%3D⟧
?sv=2022-11-02&ss=bfqt&srt=sco&sp=rwdlacup&se=2027-05-01T00:00:00Z&spr=https&sig=⟦«an:41»%3D⟧
https://storage.googleapis.com/«svc»/«noun».csv?GoogleAccessId=«svc»@«svc».iam.gserviceaccount.com&Expires=17«num:8»&Signature=⟦«an:160»%2B«an:60»%3D%3D⟧
https://«site»/reset-password?token=⟦«b64u:43»⟧
https://«site»/api/v1/«noun»s?api_key=⟦«hex:32»⟧&limit=20
https://maps.googleapis.com/maps/api/geocode/json?address=Berlin&key=⟦AIzaSy«b64u:33»⟧
https://«site»/magic-link?email=«email»&token=⟦«hex:64»⟧
wss://«site»/socket?access_token=⟦«jwt»⟧
GET /api/«noun»s?apikey=⟦«an:32»⟧&page=«n:1-9» 200 «ms»
https://«site»/invite/accept?invitation_token=⟦«b64u:20-32»⟧
== place-webhook-urls
https://hooks.slack.com/services/T0«up:9»/B0«up:9»/⟦«an:24»⟧
SLACK_WEBHOOK_URL=https://hooks.slack.com/services/T0«up:9»/B0«up:9»/⟦«an:24»⟧
https://discord.com/api/webhooks/1«num:18»/⟦«b64u:68»⟧
https://«svc».webhook.office.com/webhookb2/«uuid»@«uuid»/IncomingWebhook/⟦«hex:32»⟧/«uuid»
https://api.telegram.org/bot⟦«n:1000000000-7999999999»:AA«b64u:33»⟧/sendMessage
requests.post("https://hooks.slack.com/services/T0«up:9»/B0«up:9»/⟦«an:24»⟧", json={"text": "deploy done"})
curl -X POST https://discord.com/api/webhooks/1«num:18»/⟦«b64u:68»⟧ -d '{"content":"hi"}'
== place-jwt
⟦«jwt»⟧
access_token: ⟦«jwt»⟧
{"access_token":"⟦«jwt»⟧","token_type":"Bearer","expires_in":3600}
const TOKEN = '⟦«jwt»⟧';
SUPABASE_SERVICE_ROLE_KEY=⟦«jwt»⟧
jwt.decode("⟦«jwt»⟧", options={"verify_signature": False})
localStorage.setItem('id_token', '⟦«jwt»⟧')
[«ts»] DEBUG auth - received token ⟦«jwt»⟧ from «ip»
Decoded the token you pasted (⟦«jwt»⟧): it expires in an hour.
== place-oauth-answers
{"access_token": "⟦«b64u:120»⟧", "token_type": "bearer", "expires_in": 7200, "scope": "read write"}
{"token_type":"Bearer","refresh_token":"⟦«b64u:64»⟧","expires_in":86399}
refresh_token=⟦«b64u:86»⟧&grant_type=refresh_token&client_id=«hex:20»
grant_type=password&username=«mail»&password=⟦«pwu»⟧&client_id=web
client_id=«hex:20»&client_secret=⟦«hex:40»⟧&code=«hex:20»
{"id": «n», "token": "⟦«hex:40»⟧", "user": {"email": "«email»"}}
{"installed":{"client_id":"«num:12»-«low:32».apps.googleusercontent.com","client_secret":"⟦GOCSPX-«b64u:28»⟧","redirect_uris":["http://localhost"]}}
{"username":"«mail»","password":"⟦«pw»⟧"}
-d '{"email":"«email»","password":"⟦«pw»⟧","remember":true}'
{"data":{"login":{"accessToken":"⟦«b64u:80»⟧","user":{"id":"«uuid»"}}}}
{"apiKey":{"id":"«uuid»","name":"«noun»","secret":"⟦«b64u:43»⟧"}}
{"claudeAiOauth":{"accessToken":"⟦sk-ant-oat01-«b64u:93»AA⟧","expiresAt":17«num:11»}}
== place-key-blocks
-----BEGIN RSA PRIVATE KEY-----↵MIIE«b64:60»↵«lines:3»↵⟦«b64:64»⟧↵«lines:5»↵«b64:38»==↵-----END RSA PRIVATE KEY-----
-----BEGIN PRIVATE KEY-----↵⟦MIIEvQIBADANBgkqhkiG9w0BAQEFAASC«b64:32»⟧↵«lines:6»↵-----END PRIVATE KEY-----
-----BEGIN OPENSSH PRIVATE KEY-----↵b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW↵⟦«b64:70»⟧↵«b64:70»↵«b64:40»=↵-----END OPENSSH PRIVATE KEY-----
-----BEGIN EC PRIVATE KEY-----↵MHcCAQEEI«b64:55»↵⟦«b64:64»⟧↵«b64:34»==↵-----END EC PRIVATE KEY-----
-----BEGIN PGP PRIVATE KEY BLOCK-----↵↵lQdGBG«b64:58»↵⟦«b64:64»⟧↵«lines:5»↵=«b64:4»↵-----END PGP PRIVATE KEY BLOCK-----
    -----BEGIN PRIVATE KEY-----↵    MIIE«b64:60»↵    «lines:2:↵    »↵    ⟦«b64:64»⟧↵    -----END PRIVATE KEY-----
PuTTY-User-Key-File-3: ssh-ed25519↵Encryption: none↵Comment: «user»@«svc»↵Public-Lines: 2↵AAAAC3NzaC1lZDI1NTE5AAAAI«b64:39»↵«b64:16»↵Private-Lines: 1↵⟦«b64:43»=⟧↵Private-MAC: «hex:64»
-----BEGIN RSA PRIVATE KEY-----↵Proc-Type: 4,ENCRYPTED↵DEK-Info: AES-128-CBC,«HEX:32»↵↵«lines:2»↵⟦«b64:64»⟧↵«lines:3»↵-----END RSA PRIVATE KEY-----
{"kty":"RSA","kid":"«hex:8»","n":"«b64u:342»","e":"AQAB","d":"⟦«b64u:342»⟧"}
{"kty":"OKP","crv":"Ed25519","x":"«b64u:43»","d":"⟦«b64u:43»⟧"}
[Interface]↵PrivateKey = ⟦«b64:42»0=⟧↵Address = «ip»/24↵DNS = 1.1.1.1
# created: «date»↵# public key: age1«low:58»↵⟦AGE-SECRET-KEY-1«bech:58»⟧
<ds:KeyValue><RSAKeyValue><Modulus>«b64:172»</Modulus><Exponent>AQAB</Exponent><D>⟦«b64:172»⟧</D></RSAKeyValue>
== place-key-blocks-odd
"private_key": "-----BEGIN PRIVATE KEY-----\nMIIE«b64:60»\n«lines:3:\n»\n⟦«b64:64»⟧\n-----END PRIVATE KEY-----\n",
{"type":"service_account","project_id":"«svc»","private_key_id":"«hex:40»","private_key":"-----BEGIN PRIVATE KEY-----\n⟦MIIE«b64:60»⟧\n«lines:4:\n»\n-----END PRIVATE KEY-----\n","client_email":"«noun»@«svc».iam.gserviceaccount.com"}
GITHUB_APP_PRIVATE_KEY="-----BEGIN RSA PRIVATE KEY-----\nMIIE«b64:60»\n⟦«b64:64»⟧\n«lines:2:\n»\n-----END RSA PRIVATE KEY-----"
const key = `-----BEGIN EC PRIVATE KEY-----↵MHcC«b64:60»↵⟦«b64:64»⟧↵«b64:32»==↵-----END EC PRIVATE KEY-----`;
key = ("-----BEGIN PRIVATE KEY-----\n"↵       "MIIE«b64:60»\n"↵       "⟦«b64:64»⟧\n"↵       "-----END PRIVATE KEY-----\n")
String pem = "-----BEGIN PRIVATE KEY-----" +↵    "MIIE«b64:60»" +↵    "⟦«b64:64»⟧" +↵    "-----END PRIVATE KEY-----";
tls.key: ⟦LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tC«b64:300»==⟧
ssh_private_key: |↵  -----BEGIN OPENSSH PRIVATE KEY-----↵  b3BlbnNzaC1rZXktdjE«b64:51»↵  ⟦«b64:70»⟧↵  -----END OPENSSH PRIVATE KEY-----
-----BEGIN RSA PRIVATE KEY----- MIIE«b64:60» ⟦«b64:64»⟧ «b64:64» -----END RSA PRIVATE KEY-----
{\"pem\":\"-----BEGIN RSA PRIVATE KEY-----\\nMIIE«b64:60»\\n⟦«b64:64»⟧\\n«lines:2:\\n»\\n-----END RSA PRIVATE KEY-----\\n\"}
<key>↵-----BEGIN PRIVATE KEY-----↵«lines:2»↵⟦«b64:64»⟧↵-----END PRIVATE KEY-----↵</key>
> -----BEGIN RSA PRIVATE KEY-----↵> MIIE«b64:60»↵> ⟦«b64:64»⟧↵> «lines:2:↵> »↵> -----END RSA PRIVATE KEY-----
$ head -4 ~/.ssh/id_rsa↵-----BEGIN OPENSSH PRIVATE KEY-----↵b3BlbnNzaC1rZXktdjE«b64:51»↵⟦«b64:70»⟧↵«b64:70»
cat > /tmp/key.pem <<'PEM'↵-----BEGIN PRIVATE KEY-----↵MIIE«b64:60»↵⟦«b64:64»⟧↵«b64:64»↵-----END PRIVATE KEY-----↵PEM
""",
    EACH,
)
