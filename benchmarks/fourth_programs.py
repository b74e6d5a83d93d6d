"""Secrets written into programs and typed at shells."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["PROGRAMS"]

COUNT = 30

CODE: dict[str, str] = {
    "python": r"""
API_KEY = "‹!tok›"
password = '‹!pw›'
client = ‹title svc›Client(api_key="‹!tok›", timeout=30)
conn = psycopg2.connect(host="‹host›", dbname="‹app›", user="‹user›", password="‹!pw›")
os.environ["‹KEYVAR›"] = "‹!tok›"
headers = {"Authorization": f"Bearer ‹!tok›"}
token = os.getenv("‹SVC›_TOKEN", "‹!tok›")
    db_password: str = "‹!pw›"
jwt.encode(claims, "‹!tok›", algorithm="HS256")
auth = HTTPBasicAuth("‹user›", "‹!pw›")
requests.post(url, auth=("‹user›", "‹!pw›"))
ssh.connect("‹ip›", username="‹user›", password="‹!pw›")
smtp.login("‹mail›", "‹!pw›")
CREDENTIALS = ("‹user›", "‹!pw›")
""",
    "javascript": r"""
const ‹pick API_KEY|apiKey|token|authToken|secret› = '‹!tok›';
const pool = new Pool({ host: '‹host›', user: '‹user›', password: '‹!pw›' });
axios.defaults.headers.common['Authorization'] = 'Bearer ‹!tok›';
jwt.sign(payload, '‹!tok›', { expiresIn: '1h' })
app.use(session({ secret: '‹!tok›', resave: false }))
process.env.‹KEYVAR› = process.env.‹KEYVAR› || "‹!tok›";
export const config: Config = { ‹keyname›: "‹!tok›", region: "‹region›" };
const stripe = require('stripe')('sk_live_‹!alnum 24›');
await signInWithEmailAndPassword(auth, "‹mail›", "‹!pw›");
private readonly apiSecret: string = '‹!tok›';
mongoose.connect(uri, { user: '‹user›', pass: '‹!pw›' });
transporter = nodemailer.createTransport({ auth: { user: '‹mail›', pass: '‹!pw›' } });
bot.login('‹!cat pick M|N|O + alnum 23 + . + alnum 6 + . + b64u 38›');
""",
    "go_rust_c": r"""
const apiKey = "‹!tok›"
⇥Password: "‹!pw›",
req.Header.Set("Authorization", "Bearer ‹!tok›")
req.SetBasicAuth("‹user›", "‹!pw›")
var jwtKey = []byte("‹!tok›")
const API_TOKEN: &str = "‹!tok›";
let password = "‹!pw›".to_string();
    .basic_auth("‹user›", Some("‹!pw›"))
#define WIFI_PASSWORD "‹!pw›"
const char* password = "‹!pw›";
static const char api_key[] = "‹!tok›";
WiFi.begin("‹title noun›-Guest", "‹!pw›");
mysql_real_connect(conn, "‹host›", "‹user›", "‹!pw›", "‹app›", 0, NULL, 0);
curl_easy_setopt(curl, CURLOPT_USERPWD, "‹user›:‹!pw›");
""",
    "jvm_dotnet": r"""
private static final String API_KEY = "‹!tok›";
DriverManager.getConnection(url, "‹user›", "‹!pw›");
dataSource.setPassword("‹!pw›");
@Value("${‹svc›.token:‹!tok›}")
new UsernamePasswordCredentials("‹user›", "‹!pw›")
val apiSecret = "‹!tok›"
const val CLIENT_SECRET = "‹!tok›"
private const string Password = "‹!pw›";
client.Credentials = new NetworkCredential("‹user›", "‹!pw›");
var key = Encoding.UTF8.GetBytes("‹!tok›"); // JWT signing key
services.AddSingleton(new ApiClient(apiKey: "‹!tok›"));
buildConfigField "String", "API_KEY", "\"‹!tok›\""
signingConfigs { release { storePassword "‹!pw›" } }
keyPassword = "‹!pw›"
request.Headers.Add("X-Api-Key", "‹!tok›");
""",
    "scripting": r"""
$password = '‹!pw›';
$pdo = new PDO($dsn, '‹user›', '‹!pw›');
$conn = mysqli_connect("‹host›", "‹user›", "‹!pw›", "‹app›");
'‹keyname›' => '‹!tok›',
const SECRET = '‹!tok›';
Stripe.api_key = "sk_live_‹!alnum 24›"
client = Octokit::Client.new(access_token: '‹!hex 40›')
  password: "‹!pw›",
config :‹app›, Repo, username: "‹user›", password: "‹!pw›"
my $password = "‹!pw›";
$dbh = DBI->connect($dsn, '‹user›', '‹!pw›');
let apiKey = "‹!tok›"
static let clientSecret = "‹!tok›"
api_key <- "‹!tok›"
final String accessToken = '‹!tok›';
$cred = New-Object PSCredential("‹user›", (ConvertTo-SecureString "‹!pw›" -AsPlainText -Force))
local password = "‹!pw›"
(def api-key "‹!tok›")
""",
    "tests_seeds": r"""
User.create!(email: '‹mail›', password: '‹!pw›', admin: true)
await prisma.user.create({ data: { email: '‹mail›', password: await hash('‹!pw›', 10) } })
User.objects.create_superuser("‹user›", "‹mail›", "‹!pw›")
echo password_hash('‹!pw›', PASSWORD_DEFAULT);
bcrypt.hashpw(b"‹!pw›", bcrypt.gensalt())
page.getByLabel('Password').fill('‹!pw›')
driver.find_element(By.ID, "password").send_keys("‹!pw›")
assert client.login(username="‹user›", password="‹!pw›")
const creds = { email: '‹mail›', password: '‹!pw›' }
TEST_USER_PASSWORD = "‹!pw›"
I fill in "Password" with "‹!pw›"
cipher = Fernet(b"‹!b64 32›")
hmac.new(b"‹!tok›", body, hashlib.sha256).hexdigest()
createHmac('sha256', '‹!tok›').update(body).digest('hex')
const key = Buffer.from('‹!hex 64›', 'hex') // AES-256 key
""",
}

SHELL: dict[str, str] = {
    "databases": r"""
mysql -u ‹user› -p‹!pw› ‹app›
mysql -h ‹host› -u‹user› -p'‹!pw›' -e 'show tables'
mysqldump --user=‹user› --password=‹!pw› ‹app› > dump.sql
PGPASSWORD=‹!pw› psql -h ‹host› -U ‹user› ‹app›
PGPASSWORD='‹!pw›' pg_dump -h ‹host› ‹app› | gzip > ‹app›.gz
redis-cli -h ‹host› -a ‹!pw› ping
redis-cli -h ‹host›⏎‹host›:6379> AUTH ‹!pw›
mongosh "mongodb://‹host›/‹app›" -u ‹user› -p '‹!pw›'
sqlcmd -S ‹host› -U ‹user› -P '‹!pw›' -Q "select 1"
MYSQL_PWD=‹!pw› mysql -u ‹user›
clickhouse-client --host ‹host› --user ‹user› --password '‹!pw›'
influx -username ‹user› -password ‹!pw›
""",
    "tools": r"""
sshpass -p '‹!pw›' ssh ‹user›@‹ip›
echo '‹!pw›' | sudo -S systemctl restart ‹app›
echo "‹user›:‹!pw›" | chpasswd
htpasswd -bc .htpasswd ‹user› '‹!pw›'
openssl enc -aes-256-cbc -d -in ‹app›.enc -k '‹!pw›'
openssl pkcs12 -export -in cert.pem -out ‹app›.p12 -passout pass:‹!pw›
zip -P ‹!pw› ‹app›.zip report.csv
7z x ‹app›.7z -p‹!pw›
gpg --batch --passphrase '‹!pw›' -d ‹app›.gpg
keytool -genkey -alias ‹app› -keystore ‹app›.jks -storepass ‹!pw› -keypass ‹pw›
smbclient //‹host›/share -U ‹user›%‹!pw›
xfreerdp /v:‹ip› /u:‹user› /p:'‹!pw›'
net user ‹user› ‹!pw› /add
security find-generic-password -s ‹app› -w⏎‹!pw›
ansible all -m ping -e "ansible_password=‹!pw›"
rclone config create ‹org› sftp host ‹host› user ‹user› pass '‹!pw›'
nmcli dev wifi connect "‹title noun›" password "‹!pw›"
restic -r s3:‹host›/b --password-command 'echo ‹!pw›' snapshots
ssh-keygen -t ed25519 -N '‹!phrase›' -f deploy
""",
    "flags": r"""
‹app›-cli deploy --token ‹!tok› --env ‹env›
./run.sh --api-key=‹!tok› --verbose
npx ‹app› login --username ‹user› --password '‹!pw›'
twine upload -u __token__ -p ‹!tok› dist/*
sentry-cli --auth-token ‹!hex 64› releases new ‹ver›
sonar-scanner -Dsonar.token=‹!hex 40› -Dsonar.host.url=https://‹host›
java -Ddb.password=‹!pw› -jar ‹app›.jar
python manage.py createsuperuser --username ‹user› --password ‹!pw›
 ‹n 100 999›  ‹svc› auth login --with-token <<< "‹!tok›"
ngrok config add-authtoken ‹!cat digits 1 + alnum 26 + _ + alnum 21›
cloudflared service install ‹!tunnel›
codecov -t ‹!uuid› -f coverage.xml
gitlab-runner register --url https://‹host› --registration-token ‹!b64u 20›
tailscale up --authkey tskey-auth-k‹alnum 10›CNTRL-‹!alnum 32›
root     ‹n 100 9999›  0.1  1.2 /usr/bin/‹app› --db-password=‹!pw› --port ‹n 1000 9999›
cat > .env <<'EOT'⏎‹KEYVAR›=‹!tok›⏎EOT
cat <<EOF > /etc/‹app›.conf⏎password=‹!pw›⏎EOF
printf '%s' '‹!tok›' > ~/.‹svc›_token
""",
}

PROGRAMS: tuple[Kind, ...] = (*kinds("code", COUNT, CODE), *kinds("shell", COUNT, SHELL))
