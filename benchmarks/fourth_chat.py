"""Sentences in which a person gives away a password or a key, in some languages."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["CHAT"]

COUNT = 30

CHAT_BLOCKS: dict[str, str] = {
    "password": r"""
the password is ‹!pw›, log in as ‹user› and check the ‹app› page
use ‹user› / ‹!pw› for the ‹env› database
ssh into ‹ip› as ‹user›, password ‹!pw›
pw: ‹!pw›
Login with user ‹mail› and password ‹!pw› then take a screenshot
my sudo password is "‹!pw›" so you can just run it
I changed the root password to ‹!pw› yesterday, try again
The admin account's password is now `‹!pw›`. Don't commit it.
creds for ‹env›: ‹user› ‹!pw›
you can sign in with ‹mail› and ‹!pw›
username is ‹user› and the pass is ‹!pw›
‹!pw› is the password for the ‹app› server
it asks for a password, just type ‹!pw›
""",
    "key": r"""
here is my api key: ‹!tok›
use this token ‹!alnum 40› to call the ‹svc› api
The ‹svc› key is ‹!hex 40›, put it in .env
add the secret ‹!tok› to the config please
i generated a new token for you, it's ‹!alnum 36›
API key for ‹svc›: ‹!tok› (read only)
Set the webhook secret to ‹!tok› in the dashboard and in the code
can you test with this bearer token? ‹!jwt›
client id is ‹uuid› and client secret is ‹!tok›
my key ends tomorrow anyway so use it: ‹!tok›
""",
    "phrase": r"""
the wifi password is "‹!phrase›"
passphrase for the deploy key: ‹!phrase -›
The vault's master password is '‹!phrase›', unlock it and list the items
the passphrase is “‹!phrase›” without the quotes
decrypt the backup with the passphrase ‹!phrase -›
the key file's passphrase is `‹!phrase›`
for the zip the password is ‹!phrase -›, all lower case
""",
    "mixed_talk": r"""
So the tests fail because the db moved. New host is ‹host›, user ‹user›, password ‹!pw›. Please update the compose file.
ok, forget the old one. It is ‹!pw› now (the password), same user as before
1. open ‹host› 2. log in as ‹user› with ‹!pw› 3. export the report
Q: what is the postgres password? A: ‹!pw›
>>> what's the password for ‹user›?⏎‹!pw›
Enter password: ‹!pw›
[sudo] password for ‹first›: ‹!pw›
please remember that the ‹env› admin password is ‹!pw› for the next sessions
btw the license key is ‹!cat upper 5 + - + upper 5 + - + upper 5 + - + upper 5 + - + upper 5›
‹title first›: what was the login again? ‹title first›: ‹user›, and the password ‹!pw›
door code aside, the smtp credentials are ‹mail› with password ‹!pw›
""",
    "german_dutch": r"""
das Passwort ist ‹!pw›
Das Passwort für ‹user› lautet „‹!pw›“, bitte nicht committen
melde dich mit ‹user› und dem Kennwort ‹!pw› an
Zugangsdaten für ‹env›: Benutzer ‹user›, Passwort ‹!pw›
der API-Schlüssel lautet ‹!tok›
Hier der Token für ‹svc›: ‹!tok›
mein Passwort: ‹!pw›, damit kannst du dich auf ‹host› einloggen
het wachtwoord is ‹!pw›
log in als ‹user› met wachtwoord ‹!pw›
de sleutel voor de api van ‹svc›: ‹!tok›
lösenordet är ‹!pw› och användaren heter ‹user›
adgangskoden er ‹!pw›
""",
    "romance": r"""
le mot de passe est ‹!pw›
connecte-toi avec ‹user› et le mot de passe « ‹!pw› »
voici la clé API : ‹!tok›
Le mot de passe de la base de ‹env› est maintenant ‹!pw›, merci de mettre à jour
la contraseña es ‹!pw›
entra con el usuario ‹user› y la contraseña ‹!pw›
la clave de la API de ‹svc› es ‹!tok›
a senha é ‹!pw›
usa o usuário ‹user› com a senha ‹!pw›
o token de acesso é ‹!tok›
la password è ‹!pw›
accedi con ‹user› e la password ‹!pw›
parola este ‹!pw›
""",
    "other_scripts": r"""
пароль: ‹!pw›
пароль от базы ‹env› — ‹!pw›
вот токен для ‹svc›: ‹!tok›
зайди под ‹user› с паролем ‹!pw›
hasło to ‹!pw›
heslo je ‹!pw›, uživatel ‹user›
密码是‹!pw›
用户名 ‹user›，密码：‹!pw›
这是我的 API 密钥：‹!tok›
パスワードは ‹!pw› です
APIキーは‹!tok›です
비밀번호는 ‹!pw› 입니다
كلمة المرور هي ‹!pw›
पासवर्ड है ‹!pw›
şifre: ‹!pw›
mật khẩu là ‹!pw›
ο κωδικός πρόσβασης είναι ‹!pw›
סיסמה: ‹!pw›
""",
}

CHAT: tuple[Kind, ...] = kinds("chat", COUNT, CHAT_BLOCKS)
