"""Code and settings that speak of secrets and hold none."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["SOURCE"]

COUNT = 40

SOURCE_BLOCKS: dict[str, str] = {
    "python": r"""
password = getpass.getpass("Password for ‹user›: ")
token = os.environ["‹KEYVAR›"]
api_key = settings.‹svc›_api_key or config.get("‹svc›", "api_key")
def verify_password(plain_password: str, hashed_password: str) -> bool:  # ‹app›
    return pwd_context.verify(plain_password, user_‹n 1 9›.hashed_password)
tokens = tokenizer.encode(text, max_length=‹n 128 8192›, truncation=True)
id = Column(Integer, primary_key=True)  # ‹app›.id
items.sort(key=lambda item: item[‹n 0 5›])
response = client.messages.create(model="‹app›-large", max_tokens=‹n 256 8192›, temperature=0)
secret = hmac.compare_digest(expected_signature, request.headers["X-‹title svc›-Signature"])
password: str = Field(min_length=‹n 8 20›, repr=False)
token = secrets.token_urlsafe(‹n 16 64›)
if not user or not user.check_password(form.password.data):  # ‹path›
raise AuthenticationError(f"invalid token for {user_id} in ‹app›")
SECRET_NAME = "‹env›/‹app›/db-credentials"
access_token = create_access_token(data={"sub": user.email}, expires_delta=timedelta(minutes=‹n 5 60›))
""",
    "javascript": r"""
const apiKey = process.env.‹KEYVAR›;
const token = req.headers.authorization?.split(' ')[1]; // ‹app›
const [password, setPassword] = useState(''); // ‹path›
<input type="password" name="password" placeholder="Password" minLength={‹n 6 20›} />
{items.map((item) => <‹title app›Row key={item.id} item={item} />)}
if (!token) throw new Error('No token provided for ‹app›');
const secretKey = await loadSecret('‹env›/‹svc›');
export interface LoginRequest { email: string; password: string; remember?: boolean } // ‹ver›
Object.keys(config).forEach((key) => console.log(key, config[key].‹svc›));
const { accessToken, refreshToken } = await auth.login({ email, password: values.password, app: '‹app›' });
document.addEventListener('keydown', (e) => { if (e.key === 'Enter') submit‹title app›(); });
jwt.verify(token, publicKey, { algorithms: ['RS256'], issuer: '‹org›' })
localStorage.setItem('‹app›-token', token);
password: z.string().min(‹n 8 20›, 'Password must be at least ‹n 8 20› characters'),
headers: { Authorization: `Bearer ${token}` }, timeout: ‹n 1000 9000›,
const PASSWORD_REGEX = /^(?=.*[A-Z])(?=.*\d).{‹n 8 20›,}$/;
""",
    "go_rust": r"""
token := os.Getenv("‹KEYVAR›")
⇥Password string `json:"password" validate:"required,min=‹n 8 20›"`
if err := bcrypt.CompareHashAndPassword([]byte(user.Password), []byte(req.Password)); err != nil { // ‹app›
req.Header.Set("Authorization", "Bearer "+token) // ‹path›
func (s *‹title app›Store) GetToken(ctx context.Context, userID string) (string, error) {
for key, value := range ‹app›Headers {
let api_key = std::env::var("‹KEYVAR›").expect("‹KEYVAR› must be set");
    pub password: SecretString, // at least ‹n 8 20› characters
fn next_token(&mut self) -> Option<Token> { self.tokens.get(self.pos + ‹n 1 9›).cloned() }
let key = Key::<Aes256Gcm>::from_slice(&derived[..‹n 16 32›]);
return nil, fmt.Errorf("‹app›: password for %s is empty", user)
#[error("invalid token in {0}, code ‹n 100 999›")]
""",
    "jvm_others": r"""
private final String password; // ‹app›
String apiKey = System.getenv("‹KEYVAR›");
@Value("${‹app›.‹svc›.api-key}") private String apiKey;
user.setPassword(passwordEncoder.encode(request.getPassword())); // ‹path›
public record LoginRequest(string Email, string Password, int Tries = ‹n 1 9›);
var secret = await client.GetSecretAsync("‹app›-db-password");
builder.Configuration["‹title svc›:ApiKey"]
$password = $_POST['password'] ?? ''; // ‹path›
$token = bin2hex(random_bytes(‹n 16 64›));
has_secure_password validations: false # ‹app›
validates :password, length: { minimum: ‹n 8 20› }, if: :password_required?
let token = KeychainHelper.read(service: "‹app›", account: "‹user›")
val token = prefs.getString("‹app›_token", null)
char password[‹n 32 256›];
token_t *tok = lex_next(&lexer, ‹n 1 99›);
ALTER TABLE ‹app› ADD COLUMN password_hash VARCHAR(‹n 60 255›) NOT NULL;
CREATE INDEX idx_‹app›_token ON api_tokens (token_id, expires_at);
SELECT id, email, password_hash FROM users WHERE id = ‹n 1 9999›;
""",
    "references": r"""
‹KEYVAR›=${‹KEYVAR›}
‹KEYVAR›: ${{ secrets.‹KEYVAR› }}
  password: ${‹PWVAR›:?not set}
password: "{{ vault_‹app›_password }}"
        valueFrom:⏎          secretKeyRef:⏎            name: ‹app›-secrets⏎            key: ‹pwname›
db_password = var.‹app›_db_password
password = data.aws_secretsmanager_secret_version.‹app›.secret_string
export ‹KEYVAR›=$(op read "op://‹env›/‹svc›/token")
export ‹PWVAR›="$(cat /run/secrets/‹app›_password)"
POSTGRES_PASSWORD_FILE=/run/secrets/‹app›_db_password
"apiKey": "env:‹KEYVAR›"
//npm.‹org›.dev/:_authToken=${NPM_TOKEN}
curl -H "Authorization: Bearer $‹SVC›_TOKEN" https://‹host›/v1/‹app›
curl -u "$‹app›_USER:$‹app›_PASS" https://‹host›/api
DATABASE_URL=postgres://${DB_USER}:${DB_PASSWORD}@‹host›:5432/‹app›
spring.datasource.password=${‹PWVAR›}
aws_secret_access_key = !Ref ‹title app›Secret
--password-stdin < ~/.‹app›-password
mysql -u ‹user› -p"$‹PWVAR›" ‹app›
token: !vault '‹env›/‹svc›#token'
""",
    "placeholders": r"""
‹KEYVAR›=<your-‹svc›-key>
‹PWVAR›=changeme # ‹app›
‹SVC›_API_KEY=your_api_key_here
‹SVC›_TOKEN=xxxxxxxxxxxxxxxx
‹KEYVAR›=
‹PWVAR›=""
"‹keyname›": "YOUR_‹SVC›_KEY"
"password": "<password>", "host": "‹host›"
api_key: REPLACE_ME # ‹svc›
token: TODO # ‹svc›, ask ‹first›
Authorization: Bearer <token>  # ‹app›
curl -H "Authorization: Bearer YOUR_TOKEN" https://‹host›/v1
postgres://USER:PASSWORD@‹host›:5432/‹app›
mysql://<user>:<password>@‹host›/‹app›
export ‹SVC›_API_KEY=sk-...
password: null  # ‹app›
‹KEYVAR›=example-value-do-not-use
‹SVC›_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
""",
    "redacted": r"""
‹KEYVAR›=***
‹PWVAR›=********
  ‹KEYVAR›: ***⏎  CI: true
Authorization: Bearer [REDACTED] (‹app›)
"‹keyname›": "<redacted>", "host": "‹host›"
password=(sensitive value) # ‹app›
  + password = (sensitive value)⏎  + port     = ‹n 1000 9999›
postgresql://‹user›:***@‹host›:5432/‹app›
using key sk-...‹alnum 4› for ‹svc›
Incorrect API key provided: sk-proj-********************************************‹alnum 4›.
‹at› login ok user=‹user› password=[FILTERED]
"Parameters": {"email"=>"‹mail›", "password"=>"[FILTERED]"}
DB_PASSWORD:  <set to the key 'password' in secret '‹app›-db'>  Optional: false
X-Api-Key: •••••••• (‹svc›)
‹KEYVAR›  Encrypted  Production  ‹n 1 99›d ago
Data⏎====⏎password:  ‹n 8 40› bytes⏎username:  ‹n 4 20› bytes
""",
    "settings": r"""
[tool.ruff]⏎line-length = ‹n 80 120›
"editor.tabSize": ‹n 2 8›, "files.autoSave": "afterDelay", "‹app›.theme": "dark"
max_tokens: ‹n 256 8192›⏎temperature: 0.‹n 1 9›
  keyboard:⏎    repeat_delay: ‹n 100 900›
token_limit = ‹n 1000 90000›
"scripts": { "test": "vitest run", "build": "tsc -p .", "‹app›": "node ‹path›" }
ports:⏎  - "‹n 3000 9999›:‹n 3000 9999›"⏎depends_on: [‹app›]
key_file: /etc/‹app›/tls.key
ssl_certificate_key /etc/nginx/certs/‹app›.key;
IdentityFile ~/.ssh/‹org›_ed25519
password_policy:⏎  min_length: ‹n 8 20›⏎  require_symbols: true
auth:⏎  type: oauth2⏎  token_url: https://‹host›/oauth/token
secret_name: ‹app›-‹env›-db
PasswordAuthentication no⏎PermitRootLogin no⏎Port ‹n 1000 9999›
session_timeout: ‹n 5 90›⏎cookie_name: ‹app›_session
tokens_per_minute = ‹n 1000 90000›
client_id = "‹app›-web"
AWS_REGION=‹region›⏎AWS_PROFILE=‹org›-‹env›
""",
    "web": r"""
.‹app›-token { color: #‹hex 6›; padding: ‹n 1 40›px; }
<label for="password">Password</label><span class="hint">at least ‹n 8 20› characters</span>
<script src="/assets/‹app›-‹lower 8›.js" integrity="sha384-‹b64 48›" crossorigin="anonymous"></script>
<a href="/users/‹n 1 999›/password/edit">Change password</a>
<path d="M‹n 1 99›.‹n 1 99› ‹n 1 99›.5c-‹n 1 9›.2 0-4.‹n 1 9› 1.9-4.2 ‹n 1 99›l-2.‹n 10 99› 3.‹n 10 99›z"/>
<link rel="stylesheet" href="/static/css/main.‹hex 8›.css">
@media (min-width: ‹n 300 1600›px) { .login-form__password { display: grid; } }
<meta name="description" content="‹title app› by ‹org›: sign in with a passkey, no password needed">
<button aria-label="Copy API key to clipboard" data-testid="copy-key-‹n 1 99›">Copy</button>
"login.password.placeholder": "Enter your password (‹app›)",
"errors.token_expired": "Your session has expired. Please sign in again. (‹n 100 999›)",
<option value="‹region›">‹region›</option>
""",
}

SOURCE: tuple[Kind, ...] = kinds("code", COUNT, SOURCE_BLOCKS)
