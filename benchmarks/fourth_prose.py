"""What developers and agents write, also of passwords, tokens and keys, without giving one away."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["PROSE"]

COUNT = 40

PROSE_BLOCKS: dict[str, str] = {
    "passwords": r"""
The password must have at least ‹n 8 20› characters, one digit and one symbol.
I forgot the password for ‹env›; can you ask ‹title first› to reset it?
Password reset mails go out through the ‹app› service since v‹ver›.
The password is hashed with argon2 before it is stored, so ‹app› never sees it.
If the password is wrong ‹n 3 9› times, the account is locked for ‹n 5 60› minutes.
Users complain that the password field loses focus in ‹path›.
password is required when the account has no SSO (see ‹path›)
The default password of ‹app› is generated on first start and printed once.
Should the password be optional for the ‹user› role? I think not.
The "Forgot password?" link on /login returns ‹n 400 504› in ‹env›.
Where does ‹app› keep its database password? It is read from Vault at start.
password: a string, required, at least ‹n 8 20› characters
Passwords are compared in constant time in ‹path›:‹n 1 300›.
sudo asks for a password here, so I cannot run it; please run ‹app› yourself.
""",
    "tokens": r"""
The access token expires after ‹n 5 60› minutes and the refresh token after ‹n 7 90› days.
We used ‹n 1000 90000› tokens of the ‹n 100000 200000› token window, so the summary must be shorter.
The token of ‹app› is invalid or has expired: refresh it and try again.
Input tokens: ‹n 100 9999›, output tokens: ‹n 100 9999›, cache read: ‹n 100 99999›
The tokenizer splits "don't" into ‹n 2 4› tokens.
A missing token returns 401, a token without the scope `‹app›:read` returns 403.
‹title first› suggested to rotate the ‹svc› token every ‹n 10 90› days.
Token refresh happens in `‹path›`; the race in #‹n 100 999› is fixed there.
The parser's next token is an identifier, not a string, so it fails at line ‹n 1 900›.
CSRF token validation in ‹path› is skipped for requests with a bearer token.
token usage: ‹n 1 99›% of the budget
max_tokens was ‹n 256 8192›, which cut the answer off.
Each token holds the user id, the scope and the expiry; see the table in docs/‹app›.md.
""",
    "keys": r"""
The primary key of `‹app›` is (tenant_id, id); the foreign key points to `users`.
Your API key is read from the keychain, so ‹app› needs nothing in the shell.
You need an API key for ‹svc›: create one under Settings → Developers and set ‹SVC›_API_KEY.
Press any key to continue with ‹app›, or Ctrl-C to stop.
The cache key is made of the path, the locale and the version (‹ver›).
Rotate the signing key after the release; the old public key stays valid for ‹n 1 30› days.
The key point: ‹app› must not call ‹svc› inside a transaction.
Sort key and partition key of the table `‹app›-‹env›` are swapped in the module.
The ‹svc› API key was missing from the environment, so the test was skipped.
Translation keys such as `login.password.label` are missing in ‹n 2 9› locales.
The ssh key has to be added to the agent first: `ssh-add ~/.ssh/‹org›_ed25519`.
Object keys are compared case-insensitively since ‹ver›.
Never commit API keys; pre-commit runs a scanner over the diff of ‹app›.
""",
    "secrets": r"""
The secret is mounted as a file under /run/secrets/‹app›, not as a variable.
Secrets are kept in Vault under `‹env›/‹app›` and are synced every ‹n 1 30› minutes.
The secret to a fast build is the cache: ‹n 10 99› s instead of ‹n 100 400› s.
I rotated the client secret for ‹env› and removed the old one.
The webhook secret must match on both sides, or the signature check fails with ‹n 400 403›.
GitHub masks secrets such as ‹KEYVAR› in logs, but not when they are base64 encoded.
‹title first› found a secret in the history of `‹app›`; it has been revoked since.
Add the secret ‹KEYVAR› in the repository settings before you merge.
Credentials come from the instance role, so no access key is needed in ‹env›.
Do we want one secret per tenant? ‹n 20 900› tenants would mean ‹n 20 900› secrets.
‹KEYVAR› and ‹PWVAR› are not set; ‹app› falls back to a random value on each start.
The authentication header is dropped on redirects to another host (#‹n 100 9999›).
""",
    "agent_talk": r"""
I'll look at ‹path› first, then run the tests for `‹app›`.
The failing test is `test_login_with_wrong_password` in ‹path›; it expects ‹n 400 403›.
Now let me check how `get_token()` is called from ‹path›.
Done. ‹n 3 40› tests pass, and the type checker finds nothing in ‹n 10 200› files.
I need the password to go on, but I should not ask for it here; set ‹PWVAR› yourself.
The bug: `password` is compared before it is trimmed, see ‹path›:‹n 1 400›.
Let me read ‹path› again, since the edit did not match.
I replaced the hard-coded key with `os.environ["‹KEYVAR›"]` and added it to .env.example.
Two things remain: the migration for `api_tokens` and the docs of ‹KEYVAR›.
You're right, the secret should never be logged. I removed the line in ‹path›.
Should I use `secrets.token_urlsafe(‹n 16 48›)` here, or a uuid?
The commit ‹hex 7› broke it: the token is now read before the config is loaded.
""",
    "plans": r"""
- [ ] Move ‹KEYVAR› from the compose file into Vault
- [x] Add a test for expired tokens (‹path›)
- [ ] password reset: mail, page, rate limit (‹n 3 9› per hour)
‹n 1 9›. Read ‹PWVAR› from a file when ‹PWVAR›_FILE is set
‹n 1 9›. Write `‹path›` with a `TokenStore` protocol and a fake for tests
## Step ‹n 1 9›: rotate keys⏎⏎Create the new key, deploy, then revoke the old one after ‹n 1 48› h.
- **Auth:** tokens of ‹n 5 60› minutes, refresh on use, revoke on logout
TODO(‹first›): drop the api key column after the backfill of ‹app› (‹n 1000 90000› rows)
| Task | Owner | State |⏎|---|---|---|⏎| token rotation | ‹first› | open |⏎| password policy | ‹first› | done |
- Goal: ‹app› starts without a password in its environment
Acceptance: with a wrong key the call fails in < ‹n 50 900› ms and names the setting
""",
    "commits": r"""
‹hex 7› ‹verb› password policy in ‹app›
‹hex 8› ‹verb›(auth): refresh token before it expires (#‹n 10 999›)
‹hex 7› (HEAD -> ‹branch›, origin/‹branch›) ‹verb› the secret loader
commit ‹hex 40›⏎Author: ‹title first› <‹mail›>⏎Date:   ‹day› ‹month› ‹n 1 28› 10:‹n 10 59›:00 2026 +0200⏎⏎    ‹verb› api key check
Revert "‹verb› token cache in ‹app›"⏎⏎This reverts commit ‹hex 40›.
Merge pull request #‹n 10 9999› from ‹org›/‹branch›
Co-authored-by: ‹title first› <‹mail›>
feat(‹app›)!: passwords are no longer accepted in the URL
chore(deps): bump ‹lib› from ‹ver› to ‹ver›
fix: don't log the Authorization header in ‹path›
‹n 3 40› files changed, ‹n 1 900› insertions(+), ‹n 1 900› deletions(-)
""",
    "docs": r"""
Set `‹KEYVAR›` to a random string of at least ‹n 16 64› characters, e.g. with `openssl rand -hex 32`.
### Authentication⏎⏎Send your API key in the `X-‹title svc›-Key` header. Keys are created in the dashboard.
`password` (string, required) – the user's password. Never returned. Since ‹ver›.
| Option | Type | Default | Meaning |⏎|---|---|---|---|⏎| `token` | string | – | token for ‹svc› |⏎| `timeout` | int | ‹n 5 90› | seconds |
:param password: the password of the user, or None for ‹n 1 9› anonymous tries
@param token  the bearer token, without the word "Bearer" (‹ver›)
--password-file FILE  read the password from FILE (default: ask up to ‹n 2 5› times)
  -p, --password      Prompt for password (should happen automatically, ‹n 1 9› tries)
Returns `401` when the token is missing and `‹n 402 429›` when the key has no quota left.
Basic auth sends the user name and password in base64, which is no encryption (see RFC 7617, ‹app›).
> **Note** The secret key is shown once only. ‹title org› cannot recover it.
Usage: ‹app›-cli login [--user NAME] [--token-stdin] [--timeout ‹n 5 90›]
The connection string has the form postgresql://user:password@host:port/dbname (see ‹path›).
""",
    "german_french": r"""
Das Passwort muss mindestens ‹n 8 20› Zeichen lang sein und wird mit bcrypt gespeichert.
Hast du das Passwort für ‹env› geändert? Bei mir kommt seit heute ein ‹n 401 403›.
Der Schlüssel liegt im Tresor unter ‹env›/‹app›, bitte nicht in den Code schreiben.
Passwort vergessen? Der Link in ‹path› zeigt auf die falsche Seite.
Das Token läuft nach ‹n 5 60› Minuten ab, danach muss man sich neu anmelden.
Bitte die Zugangsdaten für ‹app› aus dem Repo nehmen, dann die Tests laufen lassen.
Le mot de passe doit contenir au moins ‹n 8 20› caractères.
Le mot de passe est stocké sous forme de hachage, jamais en clair (‹path›).
La clé primaire de la table ‹app› est composée de ‹n 2 4› colonnes.
Le jeton expire au bout de ‹n 5 60› minutes, il faut donc le renouveler dans ‹app›.
Peux-tu vérifier pourquoi la clé API n'est pas lue dans ‹path› ?
""",
    "languages": r"""
La contraseña debe tener al menos ‹n 8 20› caracteres.
¿Dónde se guarda la contraseña de ‹app›? No la encuentro en ‹path›.
A senha expira a cada ‹n 30 90› dias e precisa ser trocada no painel.
La password deve contenere almeno ‹n 8 20› caratteri e un numero.
Il token scade dopo ‹n 5 60› minuti, va rinnovato in ‹path›.
Пароль должен содержать не менее ‹n 8 20› символов.
Токен истекает через ‹n 5 60› минут, нужно обновить его в ‹path›.
Hasło musi mieć co najmniej ‹n 8 20› znaków.
密码长度至少为 ‹n 8 20› 个字符，请在 ‹path› 中检查。
令牌在 ‹n 5 60› 分钟后过期，需要刷新。
パスワードは‹n 8 20›文字以上である必要があります。
비밀번호는 ‹n 8 20›자 이상이어야 합니다.
Het wachtwoord moet minstens ‹n 8 20› tekens hebben.
Şifre en az ‹n 8 20› karakter olmalıdır.
""",
}

PROSE: tuple[Kind, ...] = kinds("prose", COUNT, PROSE_BLOCKS)
