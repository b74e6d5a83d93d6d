"""What people and agents write and what must stay: prose, also about passwords and keys."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["PROSE"]

EACH = 40

PROSE = read_kinds(
    r"""
== prose-agent 80
I'll start by looking at the «noun» module to see how it handles the «adj» case.
The «noun» test fails because `«snake»` returns None when the «noun» is «adj».
Let me check whether «camel» is used anywhere else before I rename it.
Now the «noun» and the «noun» agree; all «n» tests pass in «ms».
I've moved `«snake»` into `«path»` and removed the «adj» copy.
The root cause: «camel» is called twice, and the second call sees a «adj» «noun».
Next I'll «verb» the «noun», then «verb» the «noun» and run the tests again.
Two options: «verb» the «noun» at startup, or «verb» it lazily. I'd go for the second.
Done. The «noun» is now «adj»; I also updated the docs in `«path»`.
It looks like `«Class»` has «n» call sites, most of them in «dir».
The build takes «n» seconds because every «noun» is compiled twice.
I was wrong about the «noun»: the «adj» one is written by `«camel»` on line «n».
== prose-user 80
can you «verb» the «noun» on the «noun» page? it's «adj» since yesterday
no, please revert that and only «verb» the «noun»
why does «camel» take «n» seconds now
looks good, commit and push to «branch»
the «noun» is still «adj», see the screenshot
what's the difference between the «adj» «noun» and the «adj» one?
please write tests for «path»
I don't like the name, call it «snake» instead
ok «verb» it, but keep the «noun» as it is
run the migration on staging first, then tell me the row count
Add a «noun» column to the «noun» table (nullable), and a filter for it in the UI.
continue
== prose-about-passwords 80
The password field must be at least 12 characters long and is hashed with argon2.
Users can reset their password from the profile page; the link expires after «n» minutes.
I think the password is wrong, can you check the «noun»?
The token expired, so log in again and retry the «noun».
Passwords are stored as bcrypt hashes, never in plain text.
Add a "forgot password" link below the login form.
The API key is read from the environment at startup.
Never commit secrets; use the vault and reference them by name.
the token is missing in the request header, that's why we get 401
My password manager fills in the «noun» form twice.
The secret is to «verb» the «noun» before the «noun» is rendered.
Key idea: «verb» every «noun» once, and keep the «adj» ones.
Password must contain an uppercase letter, a digit and a special character.
A refresh token lives 30 days, an access token 15 minutes.
The password is required.
Should the token be passed as a header or as a query parameter?
please ask for the password interactively, don't take it as an argument
The password was changed on «date» by «first».
Our token bucket refills «n» tokens per second.
Rotate the signing key every quarter and publish the public key at /.well-known/jwks.json.
Your session token is validated in `«camel»`, see `«path»`.
Invalid username or password.
The secret scanner flagged «n» files, all of them false positives.
The password prompt does not appear when stdin is not a terminal.
Tokens are counted with the model's own tokenizer; the prompt had «n» tokens.
== prose-languages 60
Das Passwort wird nicht gespeichert, nur sein Hash.
Bitte das Passwort in der Umgebungsvariable ablegen und nicht im Code.
Der Token ist abgelaufen, deshalb schlägt der Test fehl.
Kannst du bitte «camel» umbenennen und die Tests anpassen?
Das Kennwort muss mindestens zwölf Zeichen haben.
Le mot de passe doit contenir au moins 8 caractères.
Le jeton est expiré, il faut se reconnecter.
Peux-tu corriger le test de `«snake»` ?
La contraseña debe tener al menos 8 caracteres.
El token caducó ayer, por eso falla la prueba.
por favor añade pruebas para «path»
A senha deve ser alterada a cada 90 dias.
La password deve essere lunga almeno 12 caratteri.
Het wachtwoord is verlopen en moet worden gewijzigd.
Hasło musi mieć co najmniej 8 znaków.
Пароль должен содержать не менее 8 символов.
Почему тест «snake» падает на CI?
Şifre en az 8 karakter olmalıdır.
密码长度至少为8个字符。
请修复 «camel» 的测试
パスワードは8文字以上で入力してください。
비밀번호는 8자 이상이어야 합니다.
== prose-commit-messages
«hex:7» Fix «adj» «noun» in «noun» (#«n»)
feat(«noun»): «verb» «noun»s in the background
fix(auth): refresh token before it expires
chore(deps): bump «pkg» from «ver» to «ver»
* «hex:9» («branch») Add password reset flow
commit «hex:40»↵Author: «first» «last» <«email»>↵Date:   Tue «month» «n:10-28» «time» 2026 +0200↵↵    «verb» the «noun» for «adj» «noun»s
Merge pull request #«n» from «svc»/«branch»
refactor: rename ApiKey to Credential
docs: explain how to rotate the api key
Revert "«verb» «adj» «noun»"
test: password validator accepts passphrases
«hex:7» HEAD@{«n:0-9»}: rebase (pick): hide tokens in logs
== prose-documentation 60
## Authentication↵↵Send your API key in the `Authorization` header: `Authorization: Bearer <token>`.
Set `«ENV»_API_KEY` to the key from the dashboard before running the example.
| Option | Default | Meaning |↵|---|---|---|↵| `«snake»` | `«n»` | how many «noun»s to «verb» |
| `password` | string | required | the password of the «noun» user |
`--token-file PATH`  read the token from a file instead of the command line
- `secret_key`: used to sign cookies. Must be kept secret.
Store the password with `pass insert «svc»/db`, then run `make «verb»`.
To create a token, open Settings → Developer → Personal access tokens.
The `api_key` parameter is optional if `«ENV»_API_KEY` is set.
1. Create a secret named `«svc»-db` with the keys `username` and `password`.
Keys start with `sk-ant-` and are shown once.
GitHub tokens have prefixes such as `ghp_`, `gho_` and `ghs_`.
curl -H "Authorization: Bearer $TOKEN" https://«site»/v1/«noun»s
export «ENV»_API_KEY=your-api-key-here
The `token` field of the answer identifies the next page, see «camel».
> **Warning** Never pass passwords on the command line: they show up in `ps`.
POST /login takes `email` and `password` and answers with a session cookie.
«camel»(password: string, salt: Buffer): Promise<string>
Changed in «ver»: `token` was renamed to `api_token`.
== prose-todo-and-plan
- [x] «verb» «noun»s in `«path»`
- [ ] move passwords to the secret manager
1. **«Name»**: «verb» the «adj» «noun»↵2. **«Name»**: «verb» the «noun»
TODO(«first»): «verb» the «noun» once «pkg» «ver» is out
## Plan↵1. Read `«path»`↵2. «verb» `«snake»`↵3. Run `pytest -q`
- «adj» «noun» («n:1-8» points)
FIXME: the token refresh races with «camel»
{"todos":[{"content":"«verb» the «noun»","status":"in_progress"},{"content":"Add password validation","status":"pending"}]}
Open question: who rotates the api key, and when?
Decision: the «noun» stays «adj»; passwords are checked by the identity provider.
== prose-review
nit: `«snake»` could be `«snake»` here
This leaks the «noun» when «camel» throws; wrap it in a finally.
Please don't log the token here, even at debug level.
LGTM, one question about the «noun» timeout («n» s?)
Why is the password compared with == instead of a constant-time compare?
Suggestion: `const «noun» = «camel»(«noun»)`
This is a public key, so committing it is fine.
Could the secret come from `process.env` instead?
We should fail early when the key is missing: `if (!apiKey) throw new Error('missing key')`.
`pwd` here means the working directory, not a password
""",
    EACH,
    wrapped=False,
)
