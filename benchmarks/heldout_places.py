"""Secrets that only their place gives away: URLs, flags, files of tools, headers, chat."""

from __future__ import annotations

from heldout_draw import Kind, call_bash, escape, indent

PW, PWSYM, PWURL = ("«pw»",), ("«pwsym»",), ("«pwurl»",)
ROW = ("«b64:64»",)
BEGIN, END = "-----BEGIN «label»PRIVATE KEY-----", "-----END «label»PRIVATE KEY-----"
LABELS = {"label": ("RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED ", "DSA ")}
# A key is hidden only if each of its rows is, so the row that is looked for moves.
PEM = (
    f"{BEGIN}\n«SECRET»\n«rows:12»\n«b64:40»==\n{END}",
    f"{BEGIN}\n«rows:6»\n«SECRET»\n«rows:6»\n«b64:22»=\n{END}",
    f"{BEGIN}\n«rows:24»\n«SECRET»\n{END}",
)

URLS = (
    Kind("url-postgres", (
        "DATABASE_URL=postgres://«user»:«SECRET»@«host»:5432/«db»",
        "postgresql+asyncpg://«user»:«SECRET»@«host»/«db»?ssl=require",
        "psql 'postgresql://«user»:«SECRET»@«host»:6543/«db»?sslmode=require' -c '\\dt'",
        "sqlalchemy.exc.OperationalError: could not connect to postgresql://«user»:«SECRET»@"
        "«host»/«db»",
    ), PWURL),
    Kind("url-mysql", (
        "mysql://«user»:«SECRET»@«host»:3306/«db»",
        "create_engine('mysql+pymysql://«user»:«SECRET»@«host»/«db»')",
        'dsn := "«user»:«SECRET»@tcp(«host»:3306)/«db»?parseTime=true"',
    ), PWURL),
    Kind("url-mongodb", (
        "mongodb+srv://«user»:«SECRET»@cluster0.«an:5».mongodb.net/«db»?retryWrites=true",
        "MongoServerError: Authentication failed: mongodb://«user»:«SECRET»@«host»:27017/admin",
        "mongoose.connect(\"mongodb://«user»:«SECRET»@a.«company».io:27017,b."
        "«company».io:27017/«db»\")",
    ), PWURL),
    Kind("url-redis", (
        "REDIS_URL=redis://:«SECRET»@«host»:6379/0",
        "rediss://default:«SECRET»@«word»-«word»-«dig:5».upstash.io:6379",
        "celery -A app worker --broker=redis://:«SECRET»@«host»/1",
    ), PWURL),
    Kind("url-queues", (
        "amqp://«user»:«SECRET»@«host»:5672/%2Fvhost",
        "[ERROR] pika: failed to dial amqps://«user»:«SECRET»@«word».rmq.cloudamqp.com/«user»",
        "nats://«user»:«SECRET»@«host»:4222",
        "CLICKHOUSE_URL=clickhouse://«user»:«SECRET»@«host»:9440/«db»",
        "smtp://«user»%40«company».com:«SECRET»@smtp.«company».com:587",
    ), PWURL),
    Kind("url-git-remote", (
        "origin\thttps://«user»:«SECRET»@github.com/«company»/«service».git (fetch)",
        "git clone https://oauth2:«SECRET»@gitlab.«company».com/«company»/«service».git",
        "fatal: unable to access 'https://x-access-token:«SECRET»@github.com/«company»/«service»/'",
        "\turl = https://«user»:«SECRET»@bitbucket.org/«company»/«service».git",
        "git remote set-url origin https://«SECRET»@github.com/«company»/«service».git",
    ), ("ghp_«b62:36»", "«b62:40»", "glpat-«url:20»", "ATBB«b62:32»", "gho_«b62:36»")),
    Kind("url-basic-auth", (
        "GET https://«user»:«SECRET»@«service».«company».com/metrics 200",
        "--extra-index-url https://«user»:«SECRET»@pypi.«company».com/simple/",
        "HTTPS_PROXY=http://«user»:«SECRET»@proxy.«company».com:3128",
        "ftp://«user»:«SECRET»@ftp.«company».com/pub/«file».tar.gz",
        "wget -q sftp://«user»:«SECRET»@«host»/«db».dump",
    ), PWURL),
    Kind("url-query", (
        "GET /api/v1/export?format=csv&access_token=«SECRET» HTTP/1.1",
        "https://«service».«company».com/callback?state=«word»&api_key=«SECRET»",
        "wss://«service».«company».com/socket?token=«SECRET»&v=2",
        "requests.exceptions.HTTPError: 403 for url: https://api.«company».com/v1?apikey=«SECRET»",
        "https://«company».com/reset?reset_token=«SECRET»",
    ), ("«b62:32»", "«hex:40»", "«url:43»")),
    Kind("url-azure-sas", (
        "https://«word».blob.core.windows.net/«db»?sv=2024-11-04&se=2026-12-01&sr=c&sp=rl&sig="
        "«SECRET»",
        "azcopy copy './out' 'https://«word».blob.core.windows.net/«db»?sp=racwdl&sig=«SECRET»'",
    ), ("«b62:20»%2B«b62:20»%3D", "«b62:14»%2F«b62:27»%3D")),
    Kind("url-aws-presigned", (
        "https://«db».s3.amazonaws.com/«file».zip?X-Amz-Date=20260«dig:1»0«dig:1»T101500Z"
        "&X-Amz-Security-Token=«SECRET»&X-Amz-SignedHeaders=host",
    ), ("IQoJb3JpZ2luX2Vj«b62:200»%3D%3D",)),
    Kind("url-slack-webhook", (
        "SLACK_WEBHOOK=https://hooks.slack.com/services/T«AN:10»/B«AN:10»/«SECRET»",
        "curl -X POST -d '{\"text\":\"done\"}' https://hooks.slack.com/services/T«AN:8»/B"
        "«AN:10»/«SECRET»",
    ), ("«b62:24»",)),
    Kind("url-discord-webhook", (
        "const hook = 'https://discord.com/api/webhooks/«dig:19»/«SECRET»'",
        "notify: https://discordapp.com/api/webhooks/«dig:18»/«SECRET»?wait=true",
    ), ("«url:68»",)),
    Kind("dsn-ado-jdbc", (
        'connectionString="Server=tcp:«db».database.windows.net,1433;User ID=«user»;Password='
        '«SECRET»;Encrypt=True"',
        "Data Source=«host»;Initial Catalog=«db»;uid=«user»;pwd=«SECRET»;",
        "jdbc:sqlserver://«host»:1433;databaseName=«db»;user=«user»;password=«SECRET»",
        "jdbc:postgresql://«host»/«db»?user=«user»&password=«SECRET»&ssl=true",
        "Driver={ODBC Driver 18 for SQL Server};Server=«host»;UID=«user»;PWD=«SECRET»;",
        "psycopg.connect(\"host=«host» dbname=«db» user=«user» password=«SECRET»\")",
    ), ("«b62:14»", "«Word»«dig:4»", "«Word»!«dig:3»«b62:6»")),
    Kind("dsn-azure", (
        "DefaultEndpointsProtocol=https;AccountName=«word»;AccountKey=«SECRET»"
        ";EndpointSuffix=core.windows.net",
        "Endpoint=sb://«word».servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey="
        "«SECRET»",
        "AccountEndpoint=https://«word».documents.azure.com:443/;AccountKey=«SECRET»;",
    ), ("«b64:86»==", "«b64:43»=")),
)  # fmt: skip

FLAGS = (
    Kind("flag-mysql", (
        "mysql -h «host» -u «user» -p«SECRET» «db» < dump.sql",
        "mysqldump --user=«user» --password=«SECRET» «db» > /tmp/«db».sql",
        "docker exec db mariadb -uroot -p'«SECRET»' -e 'show databases'",
        "MYSQL_PWD=«SECRET» mysqladmin -u root status",
    ), ("«b62:14»", "«Word»_«dig:4»", "«Word»-«dig:3»-«word»")),
    Kind("flag-postgres", (
        "PGPASSWORD=«SECRET» pg_dump -h «host» -U «user» «db»",
        "PGPASSWORD='«SECRET»' psql -U «user» -h «host» -c 'select 1'",
        "psql -c \"ALTER USER «user» WITH PASSWORD '«SECRET»'\"",
        "createuser «user»; echo \"CREATE ROLE «user» LOGIN PASSWORD '«SECRET»';\" | psql",
    ), PW),
    Kind("flag-sql-statement", (
        "CREATE USER '«user»'@'%' IDENTIFIED BY '«SECRET»';",
        "ALTER ROLE «user» PASSWORD '«SECRET»';",
        "SET PASSWORD FOR '«user»'@'localhost' = PASSWORD('«SECRET»');",
        "CREATE LOGIN «user» WITH PASSWORD = N'«SECRET»';",
    ), (*PW, *PWSYM)),
    Kind("flag-redis-mongo", (
        "redis-cli -h «host» -a «SECRET» --no-auth-warning keys '*'",
        "requirepass «SECRET»\nmaxmemory 2gb # «host»",
        "mongosh --host «host» -u «user» --password «SECRET» --authenticationDatabase admin",
        "mongorestore --uri mongodb://«host» --username=«user» --password=«SECRET» dump/",
        "127.0.0.1:6379> AUTH «SECRET»",
    ), PW),
    Kind("flag-docker-login", (
        "docker login -u «user» -p «SECRET» registry.«company».com",
        "echo \"«SECRET»\" | docker login ghcr.io -u «user» --password-stdin",
        "podman login --username «user» --password «SECRET» quay.io",
        "helm registry login registry.«company».com --username «user» --password '«SECRET»'",
    ), PW),
    Kind("flag-kubectl", (
        "kubectl create secret generic «service»-db --from-literal=password=«SECRET» -n prod",
        "kubectl create secret generic «service» --from-literal=api-key='«SECRET»'",
        "kubectl create secret docker-registry regcred --docker-username=«user»"
        " --docker-password=«SECRET»",
        "kubectl --token=«SECRET» --server https://«host»:6443 get pods",
        "kubectl set env deploy/«service» DB_PASSWORD=«SECRET»",
    ), ("«b62:20»", "«url:32»", "«Word»-«word»-«dig:4»")),
    Kind("flag-curl", (
        "curl -u «user»:«SECRET» https://«service».«company».com/api/health",
        "curl --user '«user»:«SECRET»' -X POST https://jenkins.«company».com/job/«service»/build",
        "curl -H \"Authorization: token «SECRET»\" https://git.«company».com/api/v1/user",
        "curl -sS https://«host»/v1 -H 'PRIVATE-TOKEN: «SECRET»' | jq .",
        "http --auth «user»:«SECRET» GET https://«service».«company».com",
        "curl -d 'grant_type=password&username=«user»&password=«SECRET»' https://"
        "«host»/oauth/token",
    ), ("«b62:20»", "«hex:34»", "«Word»-«word»-«dig:3»")),
    Kind("flag-cloud", (
        "az login --service-principal -u «uuid» -p «SECRET» --tenant «uuid»",
        "az storage blob list --account-name «word» --account-key «SECRET» -c «db»",
        "aws configure set aws_secret_access_key «SECRET» --profile «company»",
        "gcloud sql users set-password «user» --instance=«db» --password=«SECRET»",
        "aws rds modify-db-instance --db-instance-identifier «db» --master-user-password «SECRET»",
        "doctl auth init --access-token «SECRET»",
    ), ("«b62:40»", "«url:34»")),
    Kind("flag-vault-and-ci", (
        "vault login «SECRET» # «service»",
        "vault kv put secret/«service» password=«SECRET»",
        "VAULT_TOKEN=s.«SECRET» vault status -address=https://«host»:8200",
        "gh secret set «NPM_TOKEN|DEPLOY_KEY» --body «SECRET» --repo «company»/«service»",
        "echo «SECRET» | gh auth login --with-token # «user»",
        "gitlab-runner register --url https://«host» --registration-token «SECRET»",
        "heroku config:set SESSION_SECRET=«SECRET» -a «company»-«service»",
    ), (
        "hvs.«b62:24»", "«b62:28»", "«b62:24»", "«hex:40»", "ghp_«b62:36»", "GR1348941«url:20»",
        "«hex:64»",
    )),
    Kind("flag-many-tools", (
        "sshpass -p '«SECRET»' ssh «user»@«host» uptime",
        "twine upload -u __token__ --password «SECRET» dist/*",
        "unzip -P «SECRET» «db»-backup.zip",
        "openssl enc -d -aes-256-cbc -in «file».enc -pass pass:«SECRET»",
        "gpg --batch --passphrase «SECRET» -d «file».gpg",
        "keytool -importkeystore -srcstorepass «SECRET» -srckeystore «service».p12",
        "ldapsearch -x -D cn=admin,dc=«company» -w «SECRET» -b dc=«company»",
        "echo '«user»:«SECRET»' | sudo chpasswd",
        "smbclient //«host»/share -U '«user»%«SECRET»'",
        "ngrok config add-authtoken «SECRET»",
        "./«service» --db-pass «SECRET» --listen :80«dig:2»",
        "python manage.py sync --api-key=«SECRET» --region eu",
    ), ("«b62:16»", "«Word»-«word»-«word»-«dig:2»", "«Word»«dig:4»«b62:4»")),
    Kind("flag-windows", (
        "net user «user» «SECRET» /add",
        "setx DB_PASSWORD \"«SECRET»\" /M & rem «db»",
        "sqlcmd -S «host» -U «user» -P «SECRET» -Q \"select 1\"",
        "$pw = ConvertTo-SecureString '«SECRET»' -AsPlainText -Force # «user»",
        "cmdkey /generic:«host» /user:«user» /pass:«SECRET»",
        "msiexec /i agent.msi SERVICE_PASSWORD=«SECRET» /qn",
    ), ("«b62:14»", "«Word»«dig:4»!", "«Word».«b62:8»")),
    Kind("flag-in-tool-call", (
        "curl -s -u \"«user»:«SECRET»\" https://«host»/api",
        "PGPASSWORD=\"«SECRET»\" psql -h «host» -U «user»",
        "docker run -e \"MYSQL_ROOT_PASSWORD=«SECRET»\" -d mysql:8.«dig:1»",
        "curl -H \"Authorization: Bearer «SECRET»\" \"https://«host»/v1/jobs\"",
    ), ("«b62:18»", "«url:32»", "«Word»-«word»-«dig:4»"), shape=call_bash),
)  # fmt: skip

WIRE = (
    Kind("header-authorization", (
        "> Authorization: Bearer «SECRET»",
        "Authorization: Token «SECRET»",
        "'Authorization': 'Bearer «SECRET»',",
        "\"authorization\":[\"Bearer «SECRET»\"]",
        "headers={\"Authorization\": f\"Bearer «SECRET»\"}",
        "proxy-authorization: Bearer «SECRET»",
        "DEBUG:httpx:request headers [(b'authorization', b'Bearer «SECRET»')]",
    ), ("«url:40»", "«hex:64»", "«b62:32»", "«jwt»")),
    Kind("header-basic", (
        "> Authorization: Basic «SECRET»",
        "\"Authorization\": \"Basic «SECRET»\"",
        "req.Header.Set(\"Authorization\", \"Basic «SECRET»\")",
        "http.extraheader=AUTHORIZATION: basic «SECRET»",
    ), ("«b64:27»=", "«b64:36»", "«b64:42»==")),
    Kind("header-api-key", (
        "X-API-Key: «SECRET»",
        "< x-auth-token: «SECRET»",
        "'X-Api-Key': '«SECRET»'",
        "Ocp-Apim-Subscription-Key: «SECRET»",
        "X-Vault-Token: «SECRET»",
        "-H 'api-key: «SECRET»' \\",
        "X-Shopify-Access-Token: «SECRET»",
        "Authorization: SSWS 00«SECRET»",
    ), ("«hex:32»", "«url:40»", "«b62:36»")),
    Kind("cookie", (
        "Cookie: sessionid=«SECRET»; theme=dark",
        "Set-Cookie: session=«SECRET»; Path=/; HttpOnly; Secure",
        "< set-cookie: connect.sid=«SECRET»; Path=/; Expires=Tue, 0«dig:1» Sep 2026 10:00:00 GMT",
        "cookie: _ga=GA1.1.«dig:9»; PHPSESSID=«SECRET»",
        "curl -b 'JSESSIONID=«SECRET»' https://«host»/app",
        "document.cookie = \"auth_token=«SECRET»; path=/\"",
        "cookie: __Secure-next-auth.session-token=«SECRET»",
    ), ("«b62:32»", "s%3A«url:32».«b62:43»", "«hex:64»")),
    Kind("json-oauth-answer", (
        '{"access_token":"«SECRET»","token_type":"Bearer","expires_in":36«dig:2»}',
        '{"token_type": "Bearer", "scope": "«db»", "refresh_token": "«SECRET»"}',
        "{'id_token': '«SECRET»', 'expires_at': 17«dig:8»}",
        '"stdout":"{\\"accessToken\\":\\"«SECRET»\\",\\"user\\":\\"«user»\\"}\\n"',
    ), ("«url:64»", "«jwt»", "«b62:48»")),
    Kind("json-login-body", (
        '{"username":"«user»","password":"«SECRET»"}',
        '--data-raw \'{"email":"«user»@«company».com","password":"«SECRET»"}\'',
        '{\\"login\\":\\"«user»\\",\\"passwd\\":\\"«SECRET»\\"}',
        'body: {"op":"login","args":{"user":"«user»","pass":"«SECRET»"}}',
        "fetch('/login', {method: 'POST', body: JSON.stringify({user: '«user»', password: '"
        "«SECRET»'})})",
    ), (*PW, *PWSYM)),
)  # fmt: skip

PEMS = (
    Kind("pem-lines", PEM, ROW, LABELS),
    Kind("pem-escaped", PEM, ROW, LABELS, escape),
    Kind("pem-in-yaml", tuple("tls.key: |\n" + pem for pem in PEM), ROW, LABELS, indent),
    Kind("pem-cut-off", (
        f"{BEGIN}\n«rows:3»\n«SECRET»\n«b64:20»",
        f"$ head -4 id_rsa\n{BEGIN}\n«SECRET»\n«b64:64»",
    ), ROW, LABELS),
    Kind("pem-service-account", (
        '{"type": "service_account", "project_id": "«company»-«dig:3»", '
        '"private_key_id": "«hex:40»", '
        '"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkq«b64:48»\\n«SECRET»\\n'
        '«b64:44»=\\n-----END PRIVATE KEY-----\\n", '
        '"client_email": "«user»@«company».iam.gserviceaccount.com"}',
    ), ROW),
    Kind("pem-pgp", (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdGBG«b64:58»\n«SECRET»\n«rows:4»\n=«b64:4»\n"
        "-----END PGP PRIVATE KEY BLOCK-----",
    ), ROW),
    Kind("pem-base64-whole", (
        "    client-key-data: «SECRET»",
        "  tls.key: «SECRET»",
        "DEPLOY_KEY_B64=«SECRET»",
        "\"client-key-data\": \"«SECRET»\"",
    ), (
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpN«b64:400»Cg==",
        "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1J«b64:300»=",
    )),
    Kind("wireguard", (
        "[Interface]\nPrivateKey = «SECRET»\nAddress = 10.«dig:1».0.2/32",
        "[Peer]\nPresharedKey = «SECRET»\nEndpoint = «host»:51820",
    ), ("«b64:42»8=",)),
)  # fmt: skip

PLACES: tuple[Kind, ...] = (*URLS, *FLAGS, *WIRE, *PEMS)
