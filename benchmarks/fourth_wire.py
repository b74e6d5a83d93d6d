"""Secrets on the wire and in addresses, and wrapped in diffs or in other documents."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["WIRE"]

COUNT = 30

HTTP: dict[str, str] = {
    "bearer": r"""
Authorization: Bearer ‹!jwt›
Authorization: Bearer ‹!tok›
> GET /v1/‹app› HTTP/2⏎> Host: ‹host›⏎> authorization: Bearer ‹!tok›⏎> accept: */*
curl -s https://‹host›/v1/‹app› -H "Authorization: Bearer ‹!tok›" | jq .
curl -X ‹method› 'https://‹host›/api' \⏎  -H 'Authorization: Bearer ‹!jwt›' \⏎  -H 'Content-Type: application/json'
authorization: token ‹!hex 40›
http ‹method› ‹host›/‹app› "Authorization:Bearer ‹!tok›"
Invoke-RestMethod -Uri https://‹host›/api -Headers @{ Authorization = "Bearer ‹!tok›" }
wget --header="Authorization: Bearer ‹!tok›" https://‹host›/export.csv
grpcurl -H 'authorization: Bearer ‹!jwt›' ‹host›:443 ‹app›.v1.List
""",
    "headers": r"""
X-Api-Key: ‹!tok›
x-api-key: ‹!uuid›
PRIVATE-TOKEN: ‹!b64u 20›
curl --header "PRIVATE-TOKEN: ‹!b64u 20›" "https://‹host›/api/v4/projects"
curl -H "X-Auth-Token: ‹!tok›" https://‹host›/v2/servers
-H 'apikey: ‹!jwt›'
Authorization: ApiKey ‹!b64 44›
X-Vault-Token: hvs.‹!alnum 24›
"Ocp-Apim-Subscription-Key": "‹!hex 32›"
DD-API-KEY: ‹!hex 32›
X-Shopify-Access-Token: shpat_‹!hex 32›
X-Auth-Email: ‹mail›⏎X-Auth-Key: ‹!hex 37›
Proxy-Authorization: Basic ‹!basic›
X-N8N-API-KEY: ‹!jwt›
""",
    "basic": r"""
Authorization: Basic ‹!basic›
curl -u ‹user›:‹!pw› https://‹host›/api/status
curl -u '‹mail›:‹!pw›' -X POST https://‹host›/rest/api/2/issue
curl --user "‹user›:‹!pw›" -T dist.tar.gz ftp://‹host›/releases/
curl -sS -u "‹!tok›:" https://‹host›/v1/charges -d amount=‹n 100 9999›
http -a ‹user›:‹!pw› ‹host›/admin
wget --user=‹user› --password='‹!pw›' https://‹host›/backup.sql.gz
ab -n 100 -A ‹user›:‹!pw› https://‹host›/
> Authorization: Basic ‹!basic›⏎> User-Agent: curl/8.5.0
* Server auth using Basic with user '‹user›'⏎> GET / HTTP/1.1⏎> authorization: Basic ‹!basic›
""",
    "replies": r"""
{"access_token":"‹!jwt›","token_type":"Bearer","expires_in":3600}
{"access_token":"‹!b64u 64›","refresh_token":"‹b64u 48›","scope":"repo"}
{"token": "‹!tok›", "user": {"id": ‹n 1 999›, "email": "‹mail›"}}
{"id":‹n 1 999›,"name":"‹app›-ci","scopes":["api"],"token":"glpat-‹!b64u 20›"}
HTTP/1.1 201 Created⏎content-type: application/json⏎⏎{"api_key":"‹!tok›","created":"‹at›"}
"client_id": "‹alnum 32›",⏎  "client_secret": "‹!tok›",
{"data":{"login":{"accessToken":"‹!jwt›","user":{"id":"‹uuid›"}}}}
< HTTP/2 200⏎< x-auth-token: ‹!tok›⏎< server: nginx
<access_token>‹!tok›</access_token><expires_in>‹n 60 9999›</expires_in>
{"ok":true,"id_token":"‹!jwt›"}
{"object":"api_key","id":"key_‹alnum 12›","label":"‹app›","key":"‹!tok›"}
""",
    "bodies": r"""
grant_type=password&username=‹mail›&password=‹!pw url›&scope=openid
grant_type=client_credentials&client_id=‹uuid›&client_secret=‹!tok›
curl -d 'username=‹user›&password=‹!pw url›' https://‹host›/login
curl -X POST https://‹host›/login -H 'Content-Type: application/json' -d '{"email":"‹mail›","password":"‹!pw›"}'
curl https://‹host›/oauth/token -d client_id=‹alnum 20› -d client_secret=‹!tok›
{"query":"mutation { login(email: \"‹mail›\", password: \"‹!pw›\") { token } }"}
http POST ‹host›/api/login username=‹user› password='‹!pw›'
curl -F token=‹!tok› -F file=@report.csv https://‹host›/upload
------WebKitFormBoundary‹alnum 16›⏎Content-Disposition: form-data; name="password"⏎⏎‹!pw›
await page.fill('input[name="password"]', '‹!pw›')
cy.get('#password').type('‹!pw›')
refresh_token=‹!b64u 48›&grant_type=refresh_token
""",
    "cookies": r"""
Cookie: session=‹!tok›; theme=dark
Cookie: sessionid=‹!lower 32›; csrftoken=‹alnum 32›
cookie: _ga=GA1.2.‹digits 9›.‹digits 10›; connect.sid=s%3A‹!cat b64u 32 + . + alnum 43›
curl -b 'auth_token=‹!jwt›' https://‹host›/me
curl --cookie "PHPSESSID=‹!lower 26›" https://‹host›/admin
-H 'cookie: __Secure-next-auth.session-token=‹!cat eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0.. + b64u 16 + . + b64u 180 + . + b64u 22›'
Set-Cookie: sid=‹!tok›; Path=/; HttpOnly; Secure; SameSite=Lax
< set-cookie: refreshToken=‹!jwt›; Max-Age=‹n 1000 99999›; Path=/auth
Set-Cookie: JSESSIONID=‹!HEX 32›; Path=/‹app›; HttpOnly
document.cookie = "access_token=‹!jwt›; path=/"
‹host›⇥FALSE⇥/⇥TRUE⇥‹digits 10›⇥sessionid⇥‹!lower 32›
{"name":"session_token","value":"‹!tok›","domain":".‹org›.com","httpOnly":true}
{'Cookie': 'laravel_session=‹!enc jwt›'}
requests.get(url, cookies={"session": "‹!cat b64u 60 + . + b64u 6 + . + b64u 27›"})
""",
}

ADDRESSES: dict[str, str] = {
    "signed": r"""
https://‹org›.s3.‹region›.amazonaws.com/‹app›/‹n 1 999›.zip?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA‹b32 16›%2F20260401%2F‹region›%2Fs3%2Faws4_request&X-Amz-Date=20260401T101112Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature=‹!hex 64›
https://‹lower 10›.blob.core.windows.net/‹app›/db.bak?sv=2023-11-03&se=2026-12-31T00%3A00%3A00Z&sr=b&sp=r&sig=‹!cat alnum 38 + %2B + alnum 4 + %3D›
https://storage.googleapis.com/‹org›/‹app›.tar?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Expires=900&X-Goog-Signature=‹!hex 256›
https://cdn.‹org›.com/private/‹uuid›.mp4?Expires=‹digits 10›&Key-Pair-Id=K‹upper 13›&Signature=‹!b64u 172›
az storage blob list --account-name ‹lower 10› --sas-token "?sv=2022-11-02&ss=b&srt=sco&sp=rl&sig=‹!cat alnum 40 + %3D›"
https://‹org›.s3.amazonaws.com/‹uuid›?AWSAccessKeyId=AKIA‹b32 16›&Signature=‹!cat alnum 26 + %3D›&Expires=‹digits 10›
""",
    "webhooks": r"""
https://hooks.slack.com/services/T‹upper 10›/B‹upper 10›/‹!alnum 24›
SLACK_WEBHOOK_URL=https://hooks.slack.com/services/T‹upper 8›/B‹upper 10›/‹!alnum 24›
https://discord.com/api/webhooks/‹digits 19›/‹!b64u 68›
curl -X POST -H 'Content-type: application/json' --data '{"text":"deploy done"}' https://hooks.slack.com/services/T‹upper 9›/B‹upper 11›/‹!alnum 24›
https://‹org›.webhook.office.com/webhookb2/‹uuid›@‹uuid›/IncomingWebhook/‹!hex 32›/‹uuid›
https://api.telegram.org/bot‹digits 10›:‹!cat AA + b64u 33›/sendMessage
https://chat.googleapis.com/v1/spaces/AAAA‹alnum 7›/messages?key=AIzaSy‹b64u 33›&token=‹!b64u 43›
""",
    "query": r"""
https://‹host›/api/v2/search?q=boots&api_key=‹!tok›
wss://‹host›/stream?token=‹!jwt›
GET /reset-password?token=‹!b64u 43› HTTP/1.1
Reset your password: https://‹host›/users/password/edit?reset_password_token=‹!b64u 20›
https://‹host›/magic-login?email=‹mail›&token=‹!b64u 40›
fetch("https://api.openweathermap.org/data/2.5/weather?q=Oslo&appid=‹!hex 32›&units=metric")
https://maps.googleapis.com/maps/api/geocode/json?address=Oslo&key=AIzaSy‹!b64u 33›
https://calendar.google.com/calendar/ical/‹first›%40‹org›.com/private-‹!hex 32›/basic.ics
http://localhost:8888/?token=‹!hex 48›
https://‹host›/invite/accept?invite_token=‹!b64u 32›
open "https://‹host›/feed.xml?access_token=‹!tok›"
""",
    "userinfo": r"""
git clone https://‹user›:‹!pw url›@‹host›/‹org›/‹app›.git
git clone https://x-token-auth:‹!b64u 40›@bitbucket.org/‹org›/‹app›.git
git+https://ghp_‹!alnum 36›@github.com/‹org›/‹app›.git@v‹ver›
https://‹user›:‹!pw url›@‹host›:9200/_cat/indices
ftp://‹user›:‹!pw url›@‹host›/exports/
smtp://‹user›:‹!pw url›@‹host›:587
rtsp://admin:‹!pw url›@‹ip›:554/stream1
Cloning into '‹app›'...⏎fatal: Authentication failed for 'https://oauth2:‹!alnum 40›@‹host›/‹org›/‹app›.git/'
pip install --index-url https://‹user›:‹!alnum 32›@‹host›/simple ‹lib›
""",
    "databases": r"""
postgresql://‹user›:‹!pw url›@‹host›:5432/‹app›?sslmode=require
DATABASE_URL=postgres://‹user›:‹!pw url›@‹host›/‹app›
mysql://‹user›:‹!pw url›@‹ip›:3306/‹app›
mongodb+srv://‹user›:‹!pw url›@‹org›.‹lower 5›.mongodb.net/‹app›?retryWrites=true
redis://:‹!pw url›@‹host›:6379/0
rediss://default:‹!alnum 40›@‹org›.upstash.io:6379
amqp://‹user›:‹!pw url›@‹host›:5672/%2f
psql "postgresql://‹user›:‹!pw url›@‹host›/‹app›" -c '\dt'
engine = create_engine("mysql+pymysql://‹user›:‹!pw url›@‹host›/‹app›")
clickhouse://‹user›:‹!pw url›@‹host›:9000/‹app›
sqlserver://‹user›:‹!pw url›@‹host›:1433?database=‹app›
postgres://‹user›.‹lower 20›:‹!pw url›@aws-0-‹region›.pooler.supabase.com:6543/postgres
""",
    "dsn": r"""
Server=‹host›,1433;Database=‹app›;User Id=‹user›;Password=‹!pw›;Encrypt=True;
Host=‹host›;Port=5432;Username=‹user›;Password=‹!pw›;Database=‹app›
Driver={ODBC Driver 18 for SQL Server};Server=‹host›;UID=‹user›;PWD=‹!pw›;
jdbc:mysql://‹host›:3306/‹app›?user=‹user›&password=‹!pw url›
jdbc:oracle:thin:‹user›/‹!pw plain›@‹host›:1521/ORCL
jdbc:sqlserver://‹host›:1433;databaseName=‹app›;user=‹user›;password=‹!pw›
host=‹host› port=5432 dbname=‹app› user=‹user› password=‹!pw› sslmode=require
‹user›:‹!pw url›@tcp(‹host›:3306)/‹app›?parseTime=true
"ConnectionStrings": { "Default": "Data Source=‹host›;Initial Catalog=‹app›;User ID=‹user›;Password=‹!pw›" }
sqlplus ‹user›/‹!pw plain›@//‹host›:1521/XEPDB1
‹host›:6380,password=‹!b64 32›,ssl=True,abortConnect=False
mysql:host=‹host›;dbname=‹app›;user=‹user›;password=‹!pw›
""",
}

WRAPPED: dict[str, str] = {
    "config": r"""
diff --git a/.env b/.env⏎--- a/.env⏎+++ b/.env⏎@@ -‹n 1 9›,3 +‹n 1 9›,4 @@⏎ PORT=8080⏎+‹KEYVAR›=‹!tok›
-‹PWVAR›=‹!pw›⏎+‹PWVAR›=${‹PWVAR›}
@@ -4,7 +4,7 @@ database:⏎   host: ‹host›⏎-  password: ‹!pw›⏎+  password: !ENV DB
+  "‹keyname›": "‹!tok›",
-    environment:⏎-      - ‹PWVAR›=‹!pw›
<<<<<<< HEAD⏎‹keyname›: ‹!tok›⏎=======⏎‹keyname›: ${TOKEN}⏎>>>>>>> ‹branch›
‹n 1 40›-user = ‹user›⏎‹n 41 90›:password = ‹!pw›
config/‹env›.yml:‹n 1 90›:  ‹pwname›: ‹!pw›
""",
    "code": r"""
-const apiKey = "‹!tok›";⏎+const apiKey = process.env.API_KEY;
+    client = Client(api_key="‹!tok›")
-  password: '‹!pw›',⏎+  password: config.get('db.password'),
@@ -‹n 10 90›,6 +‹n 10 90›,7 @@ func main() {⏎+⇥token := "‹!tok›"
    ‹n 1 9›→import os⏎    10→API_TOKEN = "‹!tok›"⏎    11→
‹path›:‹n 1 300›:    password="‹!pw›",
‹path›:‹n 1 300›: const SECRET = '‹!tok›'
     ‹n 10 99›⇥  private static final String DB_PASS = "‹!pw›";
Finding: generic-api-key⏎Secret: ‹!tok›⏎File: ‹path›⏎Line: ‹n 1 300›
""",
    "json_in_json": r"""
{"body":"{\"username\":\"‹user›\",\"password\":\"‹!pw›\"}"}
{"message":"{\"level\":\"debug\",\"cfg\":{\"‹keyname›\":\"‹!tok›\"}}"}
{"payload":"{\"auth\":\"{\\\"token\\\":\\\"‹!tok›\\\"}\"}"}
"SecretString": "{\"host\":\"‹host›\",\"password\":\"‹!pw›\",\"port\":5432}"
{"log":"‹KEYVAR›=‹!tok›\n","stream":"stdout","time":"‹at›"}
"arguments":"{\"url\":\"https://‹host›\",\"headers\":{\"Authorization\":\"Bearer ‹!tok›\"}}"
{\"database\":{\"user\":\"‹user›\",\"password\":\"‹!pw›\"}}
"{\"clientSecret\": \"‹!tok›\", \"clientId\": \"‹uuid›\"}"
""",
    "transcript": r"""
{"type":"tool_result","tool_use_id":"toolu_01‹alnum 22›","content":"PORT=8080\n‹PWVAR›=‹!pw›\nDEBUG=1\n"}
{"type":"tool_use","id":"toolu_01‹alnum 22›","name":"Bash","input":{"command":"curl -s -H \"Authorization: Bearer ‹!tok›\" https://‹host›/v1"}}
{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"export ‹KEYVAR›=‹!tok› && make\"]}"}
{"type":"function_call_output","call_id":"call_‹alnum 24›","output":"{\"output\":\"database:\\n  password: ‹!pw›\\n\"}"}
{"tool_name":"Write","tool_input":{"file_path":"/code/‹app›/.env","content":"‹KEYVAR›=\"‹!tok›\"\nPORT=3000\n"}}
{"name":"Edit","input":{"file_path":"/code/‹app›/‹file›","old_string":"password = \"‹!pw›\"","new_string":"password = load()"}}
{"name":"Bash","input":{"command":"PGPASSWORD='‹!pw›' psql -h ‹host› -U ‹user› -c 'select 1'"}}
"toolUseResult":{"stdout":"{\n  \"token\": \"‹!tok›\"\n}","stderr":"","interrupted":false}
{"role":"user","content":"here is the .env:\n‹SVC›_API_KEY=‹!tok›\nplease wire it up"}
     1→# ‹app›⏎     2→DB_USER=‹user›⏎     3→DB_PASSWORD=‹!pw›⏎     4→DB_PORT=5432
""",
}

WIRE: tuple[Kind, ...] = (
    *kinds("http", COUNT, HTTP),
    *kinds("url", COUNT, ADDRESSES),
    *kinds("wrap", COUNT, WRAPPED),
)
