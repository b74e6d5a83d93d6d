"""Code that must stay: a dozen languages, with names of secrets but never one of them."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["CODE"]

EACH = 40

CODE = read_kinds(
    r"""
== code-python 60
def «snake»(«noun»: «Class», *, «noun»_id: int = «n») -> list[str]:
    return [«noun».«noun» for «noun» in self._«noun»s if «noun».is_«adj»]
from «noun».«noun» import «Class», «snake»
    assert «snake»("«noun»") == «n»
password = getpass.getpass("Password: ")
token = os.environ["«ENV»_TOKEN"]
api_key = settings.«noun»_api_key or os.getenv("«ENV»_API_KEY", "")
    def check_password(self, password: str) -> bool:
client = «Class»(token=token, timeout=«n»)
tokens = tokenizer.encode(text)[: self.max_tokens]
hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt())
if not secrets.compare_digest(token, expected_token):
parser.add_argument("--password", help="password of the database user", required=True)
key = f"{«noun»_id}:{«noun».«noun»}"
password: str = Field(min_length=12, max_length=128)
for key, value in «noun».items():
headers = {"Authorization": f"Bearer {self._token}"}
SECRET_NAMES = ("password", "token", "api_key")
@pytest.mark.parametrize("«noun»", ["«adj»", "«adj»", "«adj»"])
cache_key = hashlib.sha256(«noun».encode()).hexdigest()
secret = client.get_secret_value(SecretId="«svc»/«noun»")["SecretString"]
    raise ValueError(f"token {name!r} has expired")
self.password = password
token = self.«camel»(request.headers.get("Authorization"))
NEXT_TOKEN_KEY = "next_token"
== code-typescript 60
export function «camel»(«noun»: «Class»[]): Promise<«Class»> {
const { data, error } = await «camel»({ «noun»Id, limit: «n» });
  const [«noun», set«Name»] = useState<string | null>(null);
import { «Class», «camel» } from '@/«noun»/«kebab»';
const token = localStorage.getItem('token');
const apiKey = process.env.«ENV»_API_KEY!;
<input type="password" name="password" value={password} onChange={handleChange} />
if (!password || password.length < 8) return 'Password is too short';
headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
interface LoginForm { email: string; password: string; rememberMe?: boolean }
const secret = config.get<string>('«noun».secret');
export type TokenKind = 'access' | 'refresh' | 'invite';
const hash = await argon2.hash(password);
  key={`${«noun».id}-${index}`}
expect(screen.getByLabelText('Password')).toBeInTheDocument();
const tokens = source.split(/\s+/).map(«camel»);
  passwordResetToken: string | null;
throw new UnauthorizedError('Token expired or invalid');
const { password, ...safeUser } = user;
jwt.verify(token, process.env.JWT_SECRET as string)
  private readonly secretKey: string,
apiKey: import.meta.env.VITE_«ENV»_KEY,
await page.fill('#password', process.env.TEST_PASSWORD ?? '');
== code-go
func («noun» *«Class») «Class»(ctx context.Context, id string) (*«Class», error) {
⇥if err := «noun».«Class»(ctx, «n»); err != nil {↵⇥⇥return fmt.Errorf("«verb» «noun»: %w", err)↵⇥}
token := os.Getenv("«ENV»_TOKEN")
⇥Password string `json:"password" validate:"required,min=12"`
⇥APIKey   string `env:"«ENV»_API_KEY,required"`
req.Header.Set("Authorization", "Bearer "+token)
var ErrInvalidToken = errors.New("invalid token")
key := fmt.Sprintf("%s/%d", «noun», «noun»ID)
func hashPassword(password string) (string, error) {
password, err := term.ReadPassword(int(os.Stdin.Fd()))
case token.IDENT, token.STRING:
secret, err := client.CoreV1().Secrets(ns).Get(ctx, "«svc»-tls", metav1.GetOptions{})
== code-rust
pub fn «snake»(&self, «noun»: &str) -> Result<Vec<«Class»>, Error> {
let token = std::env::var("«ENV»_TOKEN").context("no token")?;
    let «noun» = self.«noun»s.iter().filter(|x| x.«adj»).collect::<Vec<_>>();
#[derive(Debug, Clone, Serialize)]↵pub struct «Class» {↵    pub «noun»: u64,↵    password: SecretString,↵}
impl From<«Class»> for Token {
    let password = rpassword::prompt_password("Password: ")?;
Token::Ident(name) => self.«snake»(name),
    .header("Authorization", format!("Bearer {}", token))
assert_eq!(«snake»("«noun»"), Some(«n»));
use ring::hmac::{Key, HMAC_SHA256};
== code-java-csharp
public «Class» «camel»(String «noun», int «noun»Id) throws «Class»Exception {
private final PasswordEncoder passwordEncoder;
@Value("${«noun».api-key}") private String apiKey;
String token = request.getHeader("Authorization").substring("Bearer ".length());
var password = Environment.GetEnvironmentVariable("«ENV»_PASSWORD");
if (!passwordEncoder.matches(password, user.getPasswordHash())) {
public string? Password { get; set; }
builder.Services.Configure<«Class»Options>(builder.Configuration.GetSection("«Name»"));
map.put("«noun»", new «Class»(«n», "«adj»"));
[Required, DataType(DataType.Password)]
CancellationToken cancellationToken = default
var secret = await secretClient.GetSecretAsync("«svc»-«noun»");
assertThat(«camel»("«noun»")).isEqualTo(«n»);
public void SetToken(string token) => _token = token;
== code-ruby-php
  def «snake»(«noun», «noun»: nil)
  has_secure_password
password = ENV.fetch('«ENV»_PASSWORD')
params.require(:user).permit(:email, :password, :password_confirmation)
$password = $_POST['password'] ?? '';
'password' => env('DB_PASSWORD', ''),
if (password_verify($password, $user->password_hash)) {
public function «camel»(string $«noun», ?int $limit = «n»): array
'key' => env('APP_KEY'),
$token = $request->bearerToken();
secret_key_base: <%= ENV["SECRET_KEY_BASE"] %>
  validates :password, length: { minimum: 12 }
config.filter_parameters += [:password, :token, :secret]
== code-shell 50
for «noun» in $(ls «dir»); do echo "$«noun»"; done
export DB_PASSWORD="$(pass show «svc»/db)"
read -rsp 'Password: ' password
TOKEN=$(gh auth token) npm run «verb»
curl -H "Authorization: Bearer ${TOKEN}" "https://«site»/«noun»s?page=«n»"
PGPASSWORD="$DB_PASSWORD" psql -h "$DB_HOST" -U "$DB_USER"
if [ -z "$«ENV»_API_KEY" ]; then echo "no key" >&2; exit 1; fi
docker run --rm -v "$(pwd):/app" -w /app node:«n:18-24» npm test
grep -rn "password" «dir» | head -«n:5-50»
mysql -u «user» -p «db» < «noun».sql
echo "$REGISTRY_TOKEN" | docker login ghcr.io -u «user» --password-stdin
cd «dir» && git diff --stat HEAD~«n:1-9» && npm run «verb»
find . -name '*.«ext»' -newer «noun».txt | xargs wc -l
sed -i 's/token=.*/token=/' .env
vault kv get -field=password secret/«svc»
ssh -i ~/.ssh/id_ed25519 «user»@«host» 'systemctl status «svc»'
openssl rand -base64 32 > secret.key
kubectl create secret generic «svc» --from-file=key.pem
set -euo pipefail; source .env; make «verb»
aws ssm get-parameter --name /«svc»/db/password --with-decryption
git commit -m "«verb» «noun» and drop the old token"
ssh-keygen -t ed25519 -C "«email»" -f ~/.ssh/«svc»
== code-sql
SELECT id, «noun»_id, created_at FROM «noun»s WHERE «noun»_id = $1 ORDER BY created_at DESC LIMIT «n»;
ALTER TABLE users ADD COLUMN password_hash text NOT NULL;
CREATE INDEX idx_«noun»_«noun» ON «noun»s («noun»_id, «noun»);
UPDATE users SET reset_token = NULL WHERE reset_token_expires_at < now();
CREATE USER «user» WITH PASSWORD :'password';
SELECT count(*) FROM tokens WHERE revoked = false;
INSERT INTO «noun»s (id, name) VALUES («n», '«adj» «noun»');
  token varchar(64) NOT NULL UNIQUE,
WHERE key = 'theme' AND value = 'dark'
GRANT SELECT ON ALL TABLES IN SCHEMA «db» TO «user»;
ALTER USER «user» WITH PASSWORD $1;
== code-markup
<div class="flex items-center gap-«n:1-8» rounded-lg bg-«adj»"><span>{{ «noun».«noun» }}</span></div>
<label for="password">Password</label><input id="password" type="password" autocomplete="current-password">
.«kebab» { color: #«hex:6»; padding: «n:1-40»px; }
<a href="https://«site»/«noun»s/«kebab»#«noun»">«adj» «noun»</a>
<li data-token-kind="access">{{ t('auth.token.expired') }}</li>
<Trans i18nKey="password.reset.hint">Check your mail</Trans>
<path d="M«n:1-20».5 «n:1-20».25c-1.1 0-2 .9-2 2v14c0 1.1.9 2 2 2h«n:1-20»z" fill="#«hex:6»"/>
<p class="hint">The password needs at least one digit.</p>
--token-color-keyword: #«hex:6»;
<script src="https://cdn.«svc».com/«noun»@«ver»/dist/«noun».min.js" crossorigin="anonymous"></script>
== code-native
static int «snake»(struct «noun» *«noun», size_t len)
#include "«noun»/«snake».h"
enum token_type { TOKEN_IDENT, TOKEN_NUMBER, TOKEN_EOF };
char *password = getenv("«ENV»_PASSWORD");
func «camel»(_ «noun»: String, token: Token?) async throws -> «Class» {
val password = binding.passwordInput.text.toString()
std::unordered_map<std::string, Token> «noun»s;
    case Token(kind=TokenKind.«Name»):
guard let token = Keychain.find(account: "«svc»") else { return }
KEY_ENTER = 13, KEY_ESCAPE = 27, KEY_SPACE = «n:30-40»
local key = redis.call('GET', KEYS[1])
{:ok, token} = «Class».Token.verify(conn, "user", params["token"])
== code-config-reference 60
  password: ${DB_PASSWORD}
  password: ${{ secrets.«ENV»_PASSWORD }}
password = var.db_password
API_KEY: !Ref «Class»ApiKey
        valueFrom:↵          secretKeyRef:↵            name: «svc»-db↵            key: password
  token: {{ .Values.«noun».token | quote }}
api_key = data.vault_generic_secret.«noun».data["api_key"]
POSTGRES_PASSWORD_FILE: /run/secrets/db_password
client_secret: env(«ENV»_CLIENT_SECRET)
password: "{{ vault_db_password }}"
DATABASE_URL=postgres://${DB_USER}:${DB_PASSWORD}@${DB_HOST}:5432/«db»
"apiKey": "${env:«ENV»_API_KEY}"
  secretName: «svc»-tls
AWS_SECRET_ACCESS_KEY: ${{ secrets.AWS_SECRET_ACCESS_KEY }}
password: op://Private/«svc»/password
token_file = "/etc/«svc»/token"
SECRET_ARN=arn:aws:secretsmanager:«cloud»:«num:12»:secret:«svc»/db-«an:6»
imagePullSecrets:↵  - name: «svc»-registry
//registry.npmjs.org/:_authToken=${NPM_TOKEN}
spring.datasource.password=${DB_PASSWORD:}
tokens_per_minute: «n:1000-90000»
password_min_length = «n:8-20»
max_tokens: «n:256-9000»
token_url: https://«site»/oauth/token
passwordPolicy: strong
secret_manager = "«svc»"
key_prefix: "«noun»:«noun»:"
== code-config-placeholder 60
«ENV»_API_KEY=your_api_key_here
PASSWORD=<your-password>
api_key: "YOUR_API_KEY"
DB_PASSWORD=
password: ""
token: null
sk-ant-...
«ENV»_TOKEN=xxxxxxxxxxxxxxxxxxxxxxxx
"password": "<password>"
export «ENV»_SECRET="..."
password: [REDACTED]
postgres://user:password@localhost:5432/«db»
postgres://<user>:<password>@<host>/«db»
Authorization: Bearer <token>
Authorization: Bearer YOUR_TOKEN
curl -u username:password https://«site»
client_secret=<client secret from the dashboard>
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
AWS_SECRET_ACCESS_KEY=TODO
-----BEGIN PRIVATE KEY-----↵...↵-----END PRIVATE KEY-----
SECRET_KEY = "replace-me"
api_key=INSERT_KEY_HERE
mysql -u root -p<password> «db»
"token": "string"
password: null  # set in the vault
== code-infra
resource "aws_«noun»" "«noun»" {↵  name = "«svc»-«noun»"↵  tags = { team = "«noun»" }↵}
FROM node:«n:18-24»-alpine AS build↵WORKDIR /app↵COPY package*.json ./↵RUN npm ci
apiVersion: apps/v1↵kind: Deployment↵metadata:↵  name: «svc»↵spec:↵  replicas: «n:1-9»
      - uses: actions/checkout@v«n:3-6»↵        with:↵          fetch-depth: 0
variable "db_password" {↵  type      = string↵  sensitive = true↵}
RUN --mount=type=secret,id=npm_token npm ci
      image: «svc»/«noun»:«ver»↵      ports:↵        - "«port»:«port»"
    permissions:↵      id-token: write↵      contents: read
output "cluster_endpoint" { value = aws_eks_cluster.«noun».endpoint }
HEALTHCHECK CMD curl -f http://localhost:«port»/health || exit 1
resource "random_password" "db" {↵  length  = «n:16-40»↵  special = true↵}
ARG «ENV»_TOKEN
  key    = "state/«svc»/terraform.tfstate"
""",
    EACH,
)
