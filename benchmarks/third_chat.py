"""Sentences in which a person gives a password or a key away, in several languages."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["CHAT"]

EACH = 26

CHAT = read_kinds(
    r"""
== chat-english-password 40
the password is ⟦«pw»⟧
The password for the staging db is ⟦«pw»⟧, user is «user».
ok so log in as «user» with ⟦«pw»⟧ and check the «noun» page
my sudo password is ⟦«pw»⟧ just run it
you can use my account, «email» / ⟦«pw»⟧
root pw: ⟦«pw»⟧
password's ⟦«pw»⟧ btw
just ssh in, it's «user»@«ip», password ⟦«pw»⟧
I changed the db password to "⟦«pw»⟧" yesterday, please update the compose file
set the postgres password to ⟦«pw»⟧ everywhere
use ⟦«pw»⟧ as the password for the new admin user
The Wi-Fi password in the office is `⟦«pw»⟧`.
for the test login: username «mail», password ⟦«pw»⟧
I keep getting 'access denied' with «user» and password ⟦«pw»⟧, can you have a look?
the passphrase for the ssh key is ⟦«pw»⟧
Credentials for «svc»: «user» / ⟦«pw»⟧
Basic auth is on for the preview, user «svc», pass ⟦«pw»⟧
It asks for the keystore password, that's ⟦«pw»⟧
temporary password: ⟦«pw»⟧ - she has to change it at first login
why does mysql refuse ⟦«pw»⟧? That's the password I set in the installer
Old password was ⟦«pw»⟧, new one comes from the vault
PIN and password for the router: «num:4» and ⟦«pw»⟧
admin panel is at https://«site»/admin, login «user», pw ⟦«pw»⟧
@«first» the vpn password you asked for: ⟦«pw»⟧
Please don't commit it, but the prod password is ⟦«pw»⟧
login: «user»↵password: ⟦«pw»⟧
== chat-english-key 40
here's my api key: ⟦«an:40»⟧
my «svc» api key is ⟦«hex:32»⟧, put it into .env
The token is ⟦«b64u:40»⟧ and it is valid until Friday.
use ⟦«b64u:43»⟧ as the bearer token
can you try with this token? ⟦«hex:40»⟧
I generated a new secret for the webhook: ⟦«hex:48»⟧
The client secret is "⟦«b64u:40»⟧", client id is «uuid».
add my key ⟦sk-ant-api03-«b64u:93»AA⟧ to the settings please
API Key - ⟦«an:32»⟧
the access key is AKIA«b32:16» and the secret is ⟦«b64:40»⟧
Sure! Set `«ENV»_TOKEN` to `⟦«b64u:40»⟧` and restart.
it works with the key ⟦«an:40»⟧ but not with the new one
I've hardcoded the token (⟦«b64u:40»⟧) for now
my openai key: ⟦sk-proj-«b64u:40»T3BlbkFJ«b64u:40»⟧ dont share it
encryption key is ⟦«hex:64»⟧ for the «noun» service
this is the signing secret from the slack dashboard: ⟦«hex:32»⟧
oh and the bot token from BotFather is ⟦«n:1000000000-7999999999»:AA«b64u:33»⟧
PAT for the private repo: ⟦github_pat_11«up:20»_«an:59»⟧
cookie from devtools: session=⟦«b64u:64»⟧
my session token from the browser is ⟦«b64u:50»⟧, use that for the scraper
Deploy key for «svc» → ⟦«b64u:40»⟧
I see the problem: the API key in your config, ⟦«an:36»⟧, has a trailing space.
The user's token is `⟦«hex:40»⟧`; I'll use it for the request.
== chat-typos
teh pasword is ⟦«pw»⟧
passwrod: ⟦«pw»⟧
pwd=⟦«pws»⟧ usr=«user»
my passowrd is ⟦«pw»⟧ it should work
apikey ⟦«an:40»⟧ try agian
heres the tokn: ⟦«b64u:40»⟧
ur db pass is ⟦«pw»⟧
passsword for root is ⟦«pw»⟧
the api-kye is ⟦«an:40»⟧
PASSWORD IS ⟦«pw»⟧
pw ⟦«pw»⟧ user «user»
the secert key is ⟦«b64u:40»⟧
passwd is ⟦«pw»⟧ i think
acces token ⟦«b64u:48»⟧
== chat-german
das Passwort ist ⟦«pw»⟧
Passwort für die Datenbank: ⟦«pw»⟧
Das Kennwort lautet ⟦«pw»⟧, bitte nicht weitergeben.
mein API-Key ist ⟦«an:40»⟧
nimm den Benutzer «user» mit dem Passwort ⟦«pw»⟧
Zugangsdaten: «user» / ⟦«pw»⟧
der Schlüssel für die API: ⟦«hex:32»⟧
hier der Token: ⟦«b64u:40»⟧
Ich habe das Passwort auf "⟦«pw»⟧" geändert
das root-passwort vom server ist ⟦«pw»⟧
WLAN-Passwort ⟦«pw»⟧
Einloggen mit «mail» und Passwort ⟦«pw»⟧ klappt nicht
== chat-french
le mot de passe est ⟦«pw»⟧
Mot de passe : ⟦«pw»⟧
voici ma clé API : ⟦«an:40»⟧
connecte-toi avec «user» et le mot de passe ⟦«pw»⟧
le mdp de la base c'est ⟦«pw»⟧
mdp: ⟦«pw»⟧
Identifiants : «user» / ⟦«pw»⟧
le jeton d'accès est ⟦«b64u:40»⟧
J'ai changé le mot de passe root en "⟦«pw»⟧"
la clé secrète: ⟦«hex:48»⟧
== chat-spanish-portuguese
la contraseña es ⟦«pw»⟧
Contraseña: ⟦«pw»⟧
usuario «user», contraseña ⟦«pw»⟧
mi clave de API es ⟦«an:40»⟧
la clave del servidor es ⟦«pw»⟧
el token es ⟦«b64u:40»⟧
cambié la contraseña a ⟦«pw»⟧
a senha é ⟦«pw»⟧
senha: ⟦«pw»⟧
usuário «user» e senha ⟦«pw»⟧
minha chave da API é ⟦«an:40»⟧
a senha do banco de dados é "⟦«pw»⟧"
o token de acesso é ⟦«hex:40»⟧
== chat-italian-dutch
la password è ⟦«pw»⟧
Password del database: ⟦«pw»⟧
utente «user», password ⟦«pw»⟧
la mia chiave API è ⟦«an:40»⟧
ecco il token: ⟦«b64u:40»⟧
la parola d'ordine è ⟦«pw»⟧
het wachtwoord is ⟦«pw»⟧
wachtwoord: ⟦«pw»⟧
log in met «user» en wachtwoord ⟦«pw»⟧
mijn api-sleutel is ⟦«an:40»⟧
het token is ⟦«b64u:40»⟧
ik heb het wachtwoord veranderd in ⟦«pw»⟧
== chat-slavic
hasło to ⟦«pw»⟧
Hasło: ⟦«pw»⟧
hasło do bazy danych to ⟦«pw»⟧
mój klucz API to ⟦«an:40»⟧
zaloguj się jako «user» z hasłem ⟦«pw»⟧
пароль ⟦«pw»⟧
пароль: ⟦«pw»⟧
Пароль от базы данных: ⟦«pw»⟧
логин «user» пароль ⟦«pw»⟧
мой ключ API: ⟦«an:40»⟧
вот токен: ⟦«b64u:40»⟧
heslo je ⟦«pw»⟧
heslo: ⟦«pw»⟧
== chat-turkish-nordic
şifre: ⟦«pw»⟧
veritabanı şifresi ⟦«pw»⟧
parola ⟦«pw»⟧ olarak ayarlandı
API anahtarım: ⟦«an:40»⟧
kullanıcı adı «user», şifre ⟦«pw»⟧
lösenordet är ⟦«pw»⟧
Lösenord: ⟦«pw»⟧
passordet er ⟦«pw»⟧
adgangskoden er ⟦«pw»⟧
salasana on ⟦«pw»⟧
min api-nyckel är ⟦«an:40»⟧
== chat-east-asian
密码是 ⟦«pw»⟧
密码：⟦«pw»⟧
数据库的密码是⟦«pw»⟧，用户名是 «user»
我的 API key 是 ⟦«an:40»⟧
用户名 «user» 密码 ⟦«pw»⟧
パスワードは ⟦«pw»⟧ です
パスワード: ⟦«pw»⟧
APIキーは ⟦«an:40»⟧ です
비밀번호는 ⟦«pw»⟧ 입니다
비밀번호: ⟦«pw»⟧
API 키는 ⟦«an:40»⟧ 입니다
令牌: ⟦«b64u:40»⟧
== chat-arabic-hindi-others
كلمة المرور: ⟦«pw»⟧
كلمة السر هي ⟦«pw»⟧
पासवर्ड ⟦«pw»⟧ है
पासवर्ड: ⟦«pw»⟧
mật khẩu: ⟦«pw»⟧
mật khẩu là ⟦«pw»⟧
kata sandi: ⟦«pw»⟧
passwordnya ⟦«pw»⟧
הסיסמה היא ⟦«pw»⟧
parola este ⟦«pw»⟧
a jelszó ⟦«pw»⟧
ο κωδικός είναι ⟦«pw»⟧
== chat-notes
- «svc» login: «email» / ⟦«pw»⟧
* prod DB → «user» : ⟦«pw»⟧
**Password:** `⟦«pw»⟧`
**API token**: ⟦«b64u:40»⟧
## Access↵- host: «ip»↵- user: «user»↵- pass: ⟦«pw»⟧
> pw = ⟦«pw»⟧
- [ ] rotate ⟦ghp_«an:36»⟧ (leaked in «sha»)
Username: «user»  Password: ⟦«pw»⟧
<!-- admin password: ⟦«pw»⟧ -->
# password for «svc» is ⟦«pw»⟧
// TODO remove: prod token ⟦«b64u:40»⟧
1. Open https://«site»↵2. Sign in with «email» and the password ⟦«pw»⟧
Secret: ⟦«b64u:32»⟧↵Never commit this.
== chat-agent-speaks
I found a hardcoded password in `«path»`: `⟦«pw»⟧`. It should move to an environment variable.
The config has `api_key = "⟦«an:40»⟧"`, which is committed to git.
I'll connect with the password `⟦«pw»⟧` that you gave me.
The .env file contains DB_PASSWORD=⟦«pws»⟧, so the container should start.
Running: `psql postgresql://«user»:⟦«pwu»⟧@«host»/«db»`
Done. The admin user is `«user»` and its password is `⟦«pw»⟧`.
User wants the token ⟦«b64u:40»⟧ stored in the keychain.
The header was sent as `Authorization: Bearer ⟦«b64u:48»⟧`, so authentication is fine.
I've created the account («email», password: ⟦«pw»⟧) for you.
Note: the JWT secret in docker-compose.yml is ⟦«hex:64»⟧; rotate it before the release.
Summary: user «user» on «host» has password ⟦«pw»⟧; tests use another database.
""",
    EACH,
    wrapped=False,
)
