"""Secrets in what tools of clouds, clusters and builds print or read, and in logs."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["CLOUD"]

COUNT = 30

TOOLS: dict[str, str] = {
    "secret_manifest": r"""
kind: Secret⏎metadata:⏎  name: ‹app›-db⏎type: Opaque⏎data:⏎  password: ‹!enc pw›
apiVersion: v1⏎kind: Secret⏎metadata:⏎  name: ‹svc›⏎stringData:⏎  ‹keyname›: ‹!tok›
{"apiVersion":"v1","data":{"‹PWVAR›":"‹!enc pw›"},"kind":"Secret","metadata":{"name":"‹app›"}}
kubectl create secret generic ‹app›-db --from-literal=password='‹!pw›'
kubectl -n ‹env› create secret generic ‹svc› --from-literal=‹keyname›=‹!tok› --dry-run=client -o yaml
$ kubectl get secret ‹app›-db -o jsonpath='{.data.password}' | base64 -d⏎‹!pw›
kubectl create secret docker-registry regcred --docker-server=‹host› --docker-username=‹user› --docker-password=‹!pw›
""",
    "cluster": r"""
        - name: ‹PWVAR›⏎          value: "‹!pw›"
      ‹PWVAR›:  ‹!pw›⏎      ‹PLAINVAR›:  1
helm upgrade --install ‹app› ./chart --set auth.password=‹!pw› -n ‹env›
helm install ‹app› ‹org›/‹app› --set postgresql.auth.postgresPassword='‹!pw›',replicas=2
users:⏎- name: ‹user›⏎  user:⏎    token: ‹!jwt›
    client-key-data: ‹!pem64›
kubectl config set-credentials ‹user› --token=‹!jwt›
kubeadm join ‹ip›:6443 --token ‹!cat lower 6 + . + lower 16› --discovery-token-ca-cert-hash sha256:‹hex 64›
docker swarm join --token SWMTKN-1-‹!cat lower 50 + - + lower 25› ‹ip›:2377
K3S_TOKEN=K10‹!cat hex 64 + ::server: + hex 32›
""",
    "terraform": r"""
db_password = "‹!pw›"
variable "‹svc›_token" {⏎  type    = string⏎  default = "‹!tok›"⏎}
  + password                 = "‹!pw›"
      ~ master_password = "‹!pw›" -> (known after apply)
{"‹app›_db_password":{"sensitive":true,"type":"string","value":"‹!pw›"}}
terraform apply -var 'db_password=‹!pw›' -auto-approve
provider "‹svc›" {⏎  api_token = "‹!tok›"⏎}
$ terraform output -raw ‹pwname›⏎‹!pw›
            "‹pwname›": "‹!pw›",⏎            "port": 5432,⏎            "skip_final_snapshot": true,
resource "random_password" "db" {⏎    id     = "none"⏎    length = 20⏎    result = "‹!alnum 20›"⏎}
pulumi config set --plaintext dbPassword ‹!pw›
""",
    "aws": r"""
[‹env›]⏎aws_access_key_id = AKIA‹b32 16›⏎aws_secret_access_key = ‹!alnum 40›⏎region = ‹region›
AWS_SECRET_ACCESS_KEY=‹!b64 30›
{"AccessKey":{"UserName":"‹user›","AccessKeyId":"AKIA‹b32 16›","Status":"Active","SecretAccessKey":"‹!b64 30›"}}
"Credentials": {⏎        "AccessKeyId": "ASIA‹b32 16›",⏎        "SecretAccessKey": "‹!b64 30›",
"SessionToken": "IQoJb3JpZ2luX2Vj‹!b64 300›",
export AWS_SESSION_TOKEN=FwoGZXIvYXdzE‹!b64 240›
{"ARN":"arn:aws:secretsmanager:‹region›:‹digits 12›:secret:‹env›/db-‹alnum 6›","SecretString":"{\"username\":\"‹user›\",\"password\":\"‹!pw›\"}"}
{"Parameter":{"Name":"/‹env›/‹app›/db_password","Type":"SecureString","Value":"‹!pw›","Version":‹n 1 9›}}
AWS Access Key ID [None]: AKIA‹b32 16›⏎AWS Secret Access Key [None]: ‹!b64 30›
aws ssm put-parameter --name /‹env›/‹svc›/token --type SecureString --value '‹!tok›'
AWS_BEARER_TOKEN_BEDROCK=ABSK‹!b64 96›
""",
    "azure_gcp": r"""
{"appId": "‹uuid›", "displayName": "‹app›-sp", "password": "‹!cat alnum 3 + 8Q~ + alnum 34›", "tenant": "‹uuid›"}
az login --service-principal -u ‹uuid› -p '‹!cat alnum 3 + 8Q~ + b64u 34›' --tenant ‹uuid›
DefaultEndpointsProtocol=https;AccountName=‹lower 12›;AccountKey=‹!b64 64›;EndpointSuffix=core.windows.net
Endpoint=sb://‹org›.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=‹!b64 32›
AccountEndpoint=https://‹org›.documents.azure.com:443/;AccountKey=‹!b64 64›;
[⏎  {"keyName": "key1", "permissions": "FULL", "value": "‹!b64 64›"},
$ gcloud auth print-access-token⏎ya29.‹!b64u 160-200›
{"type":"authorized_user","client_id":"‹digits 12›-‹lower 32›.apps.googleusercontent.com","client_secret":"‹!alnum 24›","refresh_token":"1//0‹b64u 98›"}
"refresh_token": "1//0‹!b64u 98-102›",
"private_key_id": "‹hex 40›",⏎  "private_key": "-----BEGIN PRIVATE KEY-----\n‹!pem 14 esc›\n-----END PRIVATE KEY-----\n",
{"type":"service_account","project_id":"‹org›-‹env›","private_key":"-----BEGIN PRIVATE KEY-----\n‹!pem 10 esc›\n-----END PRIVATE KEY-----\n","client_email":"‹app›@‹org›.iam.gserviceaccount.com"}
""",
    "vault": r"""
====== Data ======⏎Key         Value⏎---         -----⏎password    ‹!pw›⏎username    ‹user›
Unseal Key 1: ‹!b64 33›
Initial Root Token: hvs.‹!alnum 24›
token                hvs.‹!b64u 90-96›⏎token_accessor       ‹alnum 24›⏎token_duration       768h
vault kv put secret/‹env›/‹app› ‹pwname›='‹!pw›'
{"request_id":"‹uuid›","data":{"data":{"‹keyname›":"‹!tok›"},"metadata":{"version":‹n 1 30›}}}
secret_id               ‹!uuid›⏎secret_id_accessor      ‹uuid›
VAULT_TOKEN=s.‹!alnum 24›
  password:    ‹!pw›⏎  website:     https://‹host›⏎  vault:       Engineering
$ pass show ‹org›/‹app›⏎‹!pw›
$ op read "op://Engineering/‹app›/password"⏎‹!pw›
""",
    "platforms": r"""
$ heroku config -a ‹app›-‹env›⏎=== ‹app›-‹env› Config Vars⏎‹KEYVAR›:  ‹!tok›⏎RACK_ENV:    production
$ heroku config:set ‹KEYVAR›=‹!tok› -a ‹app›
fly secrets set ‹KEYVAR›=‹!tok› --app ‹app›-‹env›
$ echo '‹!tok›' | vercel env add ‹KEYVAR› production
gh secret set ‹KEYVAR› --body "‹!tok›" --repo ‹org›/‹app›
netlify env:set ‹SVC›_API_KEY ‹!tok›
railway variables --set "‹PWVAR›=‹!pw›"
gcloud run deploy ‹app› --set-env-vars ‹PWVAR›=‹!pw›,LOG_LEVEL=info --region europe-west1
az webapp config appsettings set -n ‹app› -g rg-‹env› --settings ‹KEYVAR›=‹!tok›
firebase functions:config:set ‹svc›.key="‹!tok›"
supabase link --project-ref ‹lower 20› --password '‹!pw›'
echo "‹!pw›" | docker login ‹host› -u ‹user› --password-stdin
docker login -u ‹user› -p ‹!pw› ‹host›
{"auths":{"‹host›":{"auth":"‹!basic›"}}}
""",
}

BUILDS: dict[str, str] = {
    "log": r"""
##[group]Run ./deploy.sh⏎env:⏎  ‹KEYVAR›: ‹!tok›⏎  CI: true⏎##[endgroup]
‹at› + curl -sf -H 'Authorization: Bearer ‹!tok›' https://‹host›/deploy
+ export ‹PWVAR›=‹!pw›⏎+ make migrate
#12 [build 4/7] RUN npm config set //npm.‹org›.dev/:_authToken ‹!uuid›
Step 5/9 : ENV ‹KEYVAR›=‹!tok›⏎ ---> Running in ‹hex 12›
$ mysql -h ‹host› -u ‹user› -p‹!pw› ‹app› < dump.sql
TASK [‹app› : create database user] ***⏎changed: [‹ip›] => {"changed": true, "user": "‹user›", "password": "‹!pw›"}
Run docker login -u ‹user› -p ‹!pw› ‹host›
[Pipeline] sh⏎+ sshpass -p ‹!pw› ssh ‹user›@‹ip› uptime
""",
    "file": r"""
    env:⏎      ‹KEYVAR›: ‹!tok›⏎    steps:
variables:⏎  ‹PWVAR›: "‹!pw›"
      - run: ./upload.sh --token ‹!tok›
        with:⏎          api-key: ‹!tok›⏎          host: ‹host›
environment {⏎    ‹SVC›_TOKEN = '‹!tok›'⏎}
    - hosts: db⏎      vars:⏎        ansible_become_pass: ‹!pw›
‹app›-1 ansible_host=‹ip› ansible_user=‹user› ansible_ssh_pass=‹!pw›
  - name: Set root password⏎    mysql_user:⏎      name: root⏎      password: "‹!pw›"
config.vm.provision "shell", env: {"‹PWVAR›" => "‹!pw›"}
<param name="env.‹KEYVAR›" value="‹!tok›" />
""",
}

LOGS: dict[str, str] = {
    "startup": r"""
‹at› INFO  c.‹app›.Config - loaded datasource url=‹host› user=‹user› password=‹!pw›
‹at› DEBUG settings: {'db_host': '‹host›', 'db_user': '‹user›', 'db_password': '‹!pw›'}
[‹app›] config: {"port":‹n 1000 9999›,"jwtSecret":"‹!tok›"}
level=debug ts=‹at› msg="using credentials" user=‹user› ‹pwname›=‹!pw›
‹at› ‹app›[‹n 100 9999›]: connecting to ‹host› with api_key=‹!tok›
Settings(env='‹env›', database_password='‹!pw›', debug=False)
DataSourceConfig{host='‹host›', username='‹user›', password='‹!pw›', maxPool=‹n 2 50›}
&config.DB{Host:"‹host›", User:"‹user›", Password:"‹!pw›", Port:5432}
#<struct Credentials username="‹user›", password="‹!pw›">
Config { host: "‹host›", token: Some("‹!tok›"), retries: ‹n 1 9› }
array(3) {⏎  ["user"]=>⏎  string(6) "‹user›"⏎  ["password"]=>⏎  string(12) "‹!pw›"
""",
    "generated": r"""
Admin password: ‹!pw›
Generated password: ‹!made›
‹at› [Note] A temporary password is generated for root@localhost: ‹!made›
Password for the elastic user (reset with `bin/elasticsearch-reset-password -u elastic`):⏎  ‹!made›
Password for the [elastic] user successfully reset.⏎New value: ‹!made›
*************************************************************⏎Jenkins initial setup is required. Please use the following password to proceed to installation:⏎⏎‹!hex 32›
$ cat /var/lib/jenkins/secrets/initialAdminPassword⏎‹!hex 32›
$ argocd admin initial-password -n argocd⏎‹!alnum 16›
Your new API key is: ‹!tok›⏎Store it now, it will not be shown again.
User ‹user› created with password ‹!made›
[I ‹at› ServerApp] http://localhost:8888/lab?token=‹!hex 48›
Your new secret token: ‹!tok›
Enter this recovery code if you lose your device: ‹!cat upper 5 + - + upper 5 + - + upper 5 + - + upper 5›
seeded admin user ‹mail› / ‹!made›
Login: ‹user›⏎Password: ‹!made›
""",
    "requests": r"""
‹ip› - - [‹n 1 28›/‹month›/2026:10:‹n 10 59›:11 +0000] "GET /api/v1/export?api_key=‹!tok› HTTP/1.1" 200 ‹n 100 9999›
‹at› ‹method› /auth/callback?code=‹alnum 20›&access_token=‹!jwt› 302
DEBUG:urllib3.connectionpool:https://‹host›:443 "GET /v2/items?token=‹!tok› HTTP/1.1" 200 None
Started POST "/session" for ‹ip›⏎  Parameters: {"email"=>"‹mail›", "password"=>"‹!pw›"}
‹lvl› [http] body={"email":"‹mail›","password":"‹!pw›"} status=401
‹at› ‹app› auth failed for key "‹!tok›" from ‹ip›: invalid api key
>>> headers: {'User-Agent': 'python-requests/2.32', 'Authorization': 'Bearer ‹!tok›'}
send: b'POST /login HTTP/1.1\r\nHost: ‹host›\r\nX-Api-Key: ‹!tok›\r\n\r\n'
{"level":"info","ts":"‹at›","req":{"method":"‹method›","headers":{"authorization":"Bearer ‹!jwt›"}}}
""",
}

ODD: dict[str, str] = {
    "sql": r"""
 id |  username  |   api_token⏎----+------------+--------------⏎  ‹n 1 99› | ‹user› | ‹!tok›⏎(1 row)
| id | email | session_token |⏎| ‹n 1 99› | ‹mail› | ‹!jwt› |
+----+----------+--------------+⏎| id | name     | password     |⏎+----+----------+--------------+⏎|  ‹n 1 9› | ‹user› | ‹!pw› |
-[ RECORD 1 ]-+---⏎user          | ‹user›⏎client_secret | ‹!tok›
INSERT INTO users (email, password) VALUES ('‹mail›', '‹!pw›');
INSERT INTO api_keys (id, owner, secret_key) VALUES (‹n 1 99›, '‹user›', '‹!tok›');
UPDATE users SET password = '‹!pw›' WHERE email = '‹mail›';
id,username,password⏎‹n 1 99›,‹user›,‹!pw›
name,url,username,password⏎‹host›,https://‹host›/,‹mail›,‹!pw›
""",
    "tables": r"""
| Service | User | Password |⏎|---|---|---|⏎| ‹app› | ‹user› | ‹!pw› |
| `‹KEYVAR›` | `‹!tok›` |
NAME              VALUE⏎‹KEYVAR›   ‹!tok›
│ ‹PWVAR› │ ‹!pw› │
- **Password:** `‹!pw›`
* API token: `‹!tok›`
Username: ‹user›⏎Password: ‹!pw›
**Login** ‹mail› / **Passwort** ‹!pw›
key                 value⏎‹pwname›    ‹!pw›⏎host                ‹host›
<tr><td>‹user›</td><td>Password</td><td>‹!pw›</td></tr>
<input type="password" name="password" value="‹!pw›">
""",
    "traceback": r"""
sqlalchemy.exc.OperationalError: could not connect with postgresql://‹user›:‹!pw url›@‹host›:5432/‹app›
  File "/app/db.py", line ‹n 10 300›, in connect⏎    conn = psycopg.connect(host="‹host›", user="‹user›", password="‹!pw›")
requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://‹host›/v1/data?apikey=‹!tok›&limit=10
pydantic_core.ValidationError: 1 validation error for Settings⏎‹keyname›⏎  Extra inputs are not permitted [type=extra_forbidden, input_value='‹!tok›', input_type=str]
E       AssertionError: assert {'password': '‹!pw›', 'user': '‹user›'} == {}
│ locals: password = '‹!pw›', user = '‹user›'
openai.AuthenticationError: Error code: 401 - Incorrect API key provided: sk-proj-‹!alnum 48›.
panic: dial error: password authentication failed (connect to `host=‹host› user=‹user› password=‹!pw› database=‹app›`)
Caused by: java.sql.SQLException: Cannot connect, url=jdbc:mysql://‹host›/‹app›?user=‹user›&password=‹!pw url›
MongoServerError: auth failed: mongodb+srv://‹user›:‹!pw url›@‹org›.‹lower 5›.mongodb.net/‹app›
subprocess.CalledProcessError: Command '['mysqldump', '-u', '‹user›', '-p‹!pw›', '‹app›']' returned non-zero exit status 2.
RuntimeError: login('‹user›', '‹!pw›') was refused by ‹host›
""",
}

CLOUD: tuple[Kind, ...] = (
    *kinds("cloud", COUNT, TOOLS),
    *kinds("ci", COUNT, BUILDS),
    *kinds("log", COUNT, LOGS),
    *kinds("odd", COUNT, ODD),
)
