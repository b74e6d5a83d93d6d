"""Families of places and forms that the project's own corpus holds beside its first kinds.

Each family has several lines, and its benign twins stand in the second half: what looks the same
and is a hash, an id, a ciphertext, a public key, a name or code.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable

from redaction_company import APART, GIVEN_KEYS, GIVEN_PASSWORDS
from redaction_told import TOLD, UNTOLD

__all__ = ["BENIGN_FAMILIES", "FAMILIES", "filled", "made"]

Chance = random.Random

LOWER = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
UPPER = LOWER.upper()
ALNUM = LOWER + UPPER + DIGITS
URL = ALNUM + "_-"
HEX = DIGITS + "abcdef"
BASE32 = UPPER + "234567"
BASE58 = "".join(sorted(set(ALNUM) - set("0OIl")))
BASE64 = ALNUM + "+/"
ANIMALS = "Heron Lynx Otter Raven Bison Gecko Marten Osprey Walrus Tapir".split()
THINGS = "lantern copper meadow thunder velvet harbor pepper cobalt willow ember".split()
SEEDS = """abandon ability absent acoustic adapt airport album alpha anchor antenna arrow artist
autumn balance bamboo banner basket beach blanket bronze cactus camera canyon carbon castle cherry
circle citizen coconut coral cradle crystal dolphin dragon eagle elbow engine evolve fabric
falcon fiction forest galaxy garden""".split()


def _draw(chance: Chance, letters: str, count: int) -> str:
    return "".join(chance.choices(letters, k=count))


def _password(chance: Chance) -> str:
    """Return a password in one of the shapes that people and generators give it."""
    animal, thing = chance.choice(ANIMALS), chance.choice(THINGS)
    shapes = (
        f"{animal}{chance.choice('!?#%')}{thing}{chance.randrange(10, 999)}",
        f"{thing}.{animal.lower()}.{chance.randrange(100, 999)}",
        f"{animal}-{thing}-{chance.choice(THINGS)}-{chance.randrange(10, 99)}",
        f"{animal}{chance.randrange(1000, 9999)}{thing.title()}",
        _draw(chance, LOWER + DIGITS, 18) + "4",
        _draw(chance, LOWER + UPPER, 8) + "_" + _draw(chance, LOWER + UPPER, 8),
        "{}%{}*{}".format(*(_draw(chance, ALNUM, 5) for _ in range(3))),
        f"{animal}{chance.randrange(10, 99)}!{thing}",
        _draw(chance, ALNUM, 20) + "7",
    )
    return chance.choice(shapes)


def _told_password(chance: Chance) -> str:
    """Return a password as people make it up, or as a generator with symbols draws it."""
    animal, things = chance.choice(ANIMALS), chance.sample(THINGS, 3)
    shapes = (
        "-".join((*things, str(chance.randrange(2, 99)))),
        f"{animal}-{things[0].title()}-{things[1].title()}-{chance.randrange(10, 99)}",
        f"{things[0]}{chance.randrange(1000, 9999)}!",
        _draw(chance, LOWER, 2) + _draw(chance, UPPER, 3) + "7" + _draw(chance, ALNUM, 9),
        f"{_draw(chance, 'bdgkmt', 1)}R!t{_draw(chance, 'KLMNP', 1)}kpLqZ",
    )
    return chance.choice(shapes)


def _drawn(letters: str, count: int) -> Callable[[Chance], str]:
    return lambda chance: _draw(chance, letters, count)


def _groups(letters: str, size: int, count: int, joint: str = "-") -> Callable[[Chance], str]:
    return lambda chance: joint.join(_draw(chance, letters, size) for _ in range(count))


def _seed(chance: Chance) -> str:
    return " ".join(chance.choices(SEEDS, k=chance.choice((12, 15, 18, 24))))


def _uuid(chance: Chance) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def _key(chance: Chance) -> str:
    return chance.choice((_drawn(HEX, 40), _drawn(ALNUM, 32), _drawn(URL, 43), _drawn(HEX, 64)))(
        chance
    )


def made(*pieces: str | tuple[str, int]) -> Callable[[Chance], str]:
    """Return a maker of keys from fixed pieces and (letters, count) pairs."""
    return lambda chance: "".join(
        piece if isinstance(piece, str) else _draw(chance, *piece) for piece in pieces
    )


_SLOT = re.compile(r"\{(?:uuid|([hHabdus])(\d+))\}")
_LETTERS = {
    "h": HEX, "H": HEX.upper(), "a": ALNUM, "b": BASE64, "d": DIGITS, "u": URL, "s": BASE58,
}  # fmt: skip


def filled(line: str, chance: Chance) -> str:
    """Return a benign line with its slots filled."""
    return _SLOT.sub(
        lambda slot: _draw(chance, _LETTERS[slot[1]], int(slot[2])) if slot[1] else _uuid(chance),
        line,
    )


Family = tuple[Callable[[Chance], str], tuple[str, ...]]

FAMILIES: dict[str, Family] = {
    "label-line": (_password, (
        "Admin password:\n{s}", "Your temporary password is:\n\n    {s}\n", "Generated root password:\n{s}\nPlease store it.",
        "Here is the password for the new user:\n```\n{s}\n```", "The initial login token is shown once:\n\n  {s}\n\nCopy it now.",
        "Password (copy it now, it is not shown again):\n{s}",
    )),
    "asked-for": (_password, (
        "$ vault kv get -field=password secret/app\n{s}", "$ op item get db --fields password\n{s}",
        "$ aws ssm get-parameter --name /prod/db_password --with-decryption --query Parameter.Value --output text\n{s}",
        "$ security find-generic-password -s deploy -w\n{s}", "$ terraform output -raw db_password\n{s}",
        "❯ bw get password github.com\n{s}", "$ kubectl get secret db -o jsonpath='{.data.password}' | base64 --decode; echo\n{s}",
        "% pulumi config get dbPassword\n{s}", "$ heroku config:get SECRET_KEY_BASE -a shop\n{s}", "$ printenv DB_PASSWORD\n{s}",
        "$ cat /run/secrets/db_password\n{s}", "> doppler secrets get DB_PASSWORD --plain\n{s}", "$ echo $API_TOKEN\n{s}",
    )),
    "generated": (_key, (
        "$ openssl rand -hex 32\n{s}", "$ python -c 'import secrets; print(secrets.token_urlsafe(32))'\n{s}",
        "$ pwgen -s 32 1\n{s}", "$ gh auth token\n{s}", "$ gcloud auth print-access-token\n{s}", "$ head -c 32 /dev/urandom | base64\n{s}",
        "$ php artisan key:generate --show\n{s}", "$ rails secret\n{s}", "$ wg genkey\n{s}", "$ npx auth secret\n{s}",
    )),
    "markdown-table": (_password, (
        "| env | user | password |\n| --- | --- | --- |\n| prod | app | {s} |", "| Service | Login | Pass |\n|:--|:--|:--|\n| mail | bob | `{s}` |",
        "|name|secret|\n|-|-|\n|a|none|\n|b|{s}|", "| User | Password | Role |\n|---|---|---|\n| root | {s} | admin |",
        "| Credential | Value |\n|---|---|\n| Password | {s} |", "| API token | {s} |",
    )),
    "csv": (_password, (
        "user,password,role\nbob,{s},admin", "id;login;pass;mail\n1;bob;{s};b@example.com", "host\tuser\tpassword\ndb1\tapp\t{s}",
        '"username","password"\n"bob","{s}"', "url,username,password,notes\nhttps://a.example.com,bob,{s},", "email,api_token\nb@example.com,{s}",
    )),
    "sql-result": (_password, (
        " id | login | password \n----+-------+----------\n  1 | bob   | {s}\n(1 row)", "+----+----------+\n| id | password |\n+----+----------+\n|  1 | {s} |\n+----+----------+",
        "*************************** 1. row ***************************\n      id: 1\npassword: {s}",
        "-[ RECORD 1 ]------\nid       | 1\npassword | {s}", "┌─id─┬─secret──┐\n│  1 │ {s} │\n└────┴─────────┘", "NAME     TOKEN\nci-bot   {s}",
    )),
    "html-table": (_password, (
        "<tr><th>Password</th><td>{s}</td></tr>", "<dt>Password</dt><dd>{s}</dd>", "<td>API token</td>\n<td><code>{s}</code></td>",
        "<b>Password:</b> {s}<br>", "<label>Password</label><span>{s}</span>", '<input type="password" name="pw" value="{s}">',
    )),
    "parent": (_key, (
        "encryption:\n  key: {s}", "token:\n  value: {s}", "password:\n    default: {s}", "<Password>\n  <Value>{s}</Value>\n</Password>",
        '"secret": {{\n  "value": "{s}"\n}}', 'apiKey: {{ value: "{s}" }}', "signing:\n  algorithm: HS256\n  key: {s}", '[encryption]\nkey = "{s}"',
        '"token": {{"type": "string", "default": "{s}"}}', '"apiKeys": ["{s}"]', "api_keys:\n  - {s}", "TOKENS = ['{s}']", '"passwords": ["{s}", "{s}"]',
    )),
    "name-and-value": (_password, (
        '{{"key": "DB_PASSWORD", "type": "env_var", "value": "{s}"}}', '{{"value": "{s}", "name": "DB_PASSWORD"}}', "ParameterKey=DbPassword,ParameterValue={s}",
        '"OutputKey": "AdminPassword", "OutputValue": "{s}"', "- key: db_password\n  sensitive: true\n  value: {s}", "-Name DbPassword -Value {s}",
        'SetSecret(name: "DbPassword", value: "{s}")', '<add key="SmtpPassword" value="{s}" />', '<param name="password">{s}</param>', "setting name=password value={s}",
        '"name":"password","label":"Password","value":"{s}"',
    )),
    "kube-secret": (_drawn(BASE64, 32), (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ndata:\n  config: {s}", "kind: Secret\ntype: Opaque\nstringData:\n  conn: {s}",
        '{{"kind":"Secret","data":{{"tls":"{s}"}}}}', "data:\n  client: {s}\nkind: Secret\n",
    )),
    "state": (_password, (
        '"type": "random_password", "name": "db", "instances": [{{"attributes": {{"result": "{s}"}}}}]', '  + result = "{s}" # random_password.db',
        'resource "random_password" "db" {{\n    result      = "{s}"\n}}', '"outputs": {{"db_password": {{"value": "{s}", "type": "string"}}}}',
        'db_password = "{s}"\nendpoint = "db.example.com"', '  ~ password = "{s}" -> (sensitive value)', '"type":"random_string","values":{{"result":"{s}"}}',
    )),
    "commands": (_password, (
        "xfreerdp /u:bob /p:{s} /v:10.0.0.5", "rdesktop -u bob -p {s} 10.0.0.5", "cmdkey /generic:x /user:bob /pass:{s}", "schtasks /create /ru bob /rp {s}",
        "mongosh -u root -p '{s}' --authenticationDatabase admin", "cqlsh -u cassandra -p {s} host", "keytool -importkeystore -storepass {s} -keypass x",
        "jarsigner -storepass {s} app.jar key", "openssl pkcs12 -export -passout pass:{s} -out a.p12", "openssl enc -aes-256-cbc -k {s} -in a",
        "7z a -p{s} a.7z b", "zip -P {s} a.zip b", "unrar x -p{s} a.rar", "gpg --batch --passphrase {s} -c a", "ansible-playbook a.yml -e ansible_password={s}",
        "ansible all -m ping --extra-vars 'ansible_become_pass={s}'", "net use Z: \\\\srv\\share {s} /user:bob", "runas /user:bob {s}", "winrs -r:host -u:bob -p:{s} dir",
        "evil-winrm -i 10.0.0.5 -u bob -p '{s}'", "crackmapexec smb 10.0.0.5 -u bob -p '{s}'", "impacket-psexec bob:'{s}'@10.0.0.5", "kinit bob <<< '{s}'",
        "echo -n '{s}' | base64", "echo '{s}' | sudo -S apt update", "printf '%s' '{s}' | gh secret set TOKEN", "echo bob:{s} | chpasswd", "ftp -u ftp://bob:{s}@h/ f",
        "lftp -u bob,{s} ftp.example.com", "wget --http-user=bob --http-password={s} https://x", "http -a bob:{s} https://x", "xh --auth bob:{s} x.example.com",
        "ldapsearch -x -D cn=admin,dc=x -w {s} -b dc=x", "snmpwalk -v2c -c {s} 10.0.0.1", "snmpget -v3 -u bob -A {s} -a SHA 10.0.0.1", "mosquitto_pub -h h -u bob -P {s} -t a",
        "sqlcmd -S h -U sa -P {s} -Q 'select 1'", "bcp db in f -U sa -P {s}", "sqlplus app/{s}@db", "impala-shell -l -u bob --ldap_password_cmd='echo {s}'",
        "influx -username bob -password {s}", "clickhouse-client --user app --password {s}", "etcdctl --user root:{s} get a", "nmcli dev wifi connect Home password {s}",
        "wpa_passphrase Home {s}", "iwctl --passphrase {s} station wlan0 connect Home", "adb shell input text {s} # password", "vncviewer -passwd {s}",
        "smbmap -u bob -p {s} -H 10.0.0.5", "rclone config create r sftp pass {s}", "restic -r r --password-command 'echo {s}' backup", "az login --service-principal -u id -p {s} --tenant t",
        "gcloud sql users set-password root --password={s}", "aws rds modify-db-instance --master-user-password {s}", "docker secret create db - <<< {s}", "heroku config:set DB_PASS={s}",
        "flyctl secrets set DB_PASSWORD={s}", "wrangler secret put TOKEN <<< {s}", "vault kv put secret/app password={s}", "consul kv put app/db_password {s}", "git config credential.password {s}",
        "svn co --username bob --password {s} https://x", "mvn deploy -Dpassword={s}", "java -Djavax.net.ssl.keyStorePassword={s} -jar a.jar", "gradle publish -PsigningPassword={s}",
        "usermod -p {s} bob", "mysqladmin -u root password '{s}'", "psql \"host=h user=u password={s}\"", "PGPASSWORD={s} psql", "MYSQL_PWD={s} mysql", "SSHPASS={s} sshpass -e ssh h",
        "aria2c --http-user=a --http-passwd={s} u", "rsync --password-file=<(echo {s}) a b", "curl --ntlm -u 'DOM\\bob:{s}' https://x", "curl --proxy-user bob:{s} x", "curl -d 'user=bob&password={s}' x",
        "signtool sign /f c.pfx /p {s} a.exe", "certutil -p {s} -importpfx c.pfx", "security import c.p12 -P {s}", "security unlock-keychain -p {s} login.keychain", "productsign --password {s}",
        "xcrun altool -u a@example.com -p {s}", "neo4j-admin set-initial-password {s}", "cypher-shell -u neo4j -p {s}", "redis-cli -h h -a {s} ping", "redis-cli --pass {s}", "ipmitool -U root -P {s} sel",
    )),
    "sql-users": (_password, (
        "CREATE USER 'bob'@'%' IDENTIFIED BY '{s}';", "ALTER ROLE app WITH LOGIN PASSWORD '{s}';", "CREATE LOGIN bob WITH PASSWORD = N'{s}';", "SET PASSWORD FOR 'bob'@'h' = '{s}';",
        "GRANT ALL ON *.* TO bob IDENTIFIED BY '{s}'", "ALTER USER bob SET PASSWORD '{s}'", "CREATE USER bob PASSWORD '{s}'", "INSERT INTO users (name, password) VALUES ('bob', '{s}');",
        "UPDATE users SET password = '{s}' WHERE id = 1", "CREATE USER bob IDENTIFIED WITH plaintext_password BY '{s}'", "dblink('host=h user=u password={s}')", "db.createUser({{user: 'a', pwd: '{s}', roles: []}})",
        "ACL SETUSER bob on >{s} ~* +@all", "AUTH default {s}", "127.0.0.1:6379> AUTH {s}", "requirepass {s}", "CONFIG SET requirepass {s}", "CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'u', password '{s}');",
        "db.auth('bob', '{s}')", "CHANGE MASTER TO MASTER_USER='r', MASTER_PASSWORD='{s}';",
    )),
    "files": (_password, (
        "machine h.example.com\n  login bob\n  password {s}", "db.example.com:5432:app:bob:{s}", "*:*:*:postgres:{s}", "[client]\nuser=root\npassword={s}", "[pypi]\nusername = __token__\npassword = {s}",
        'network={{\n  ssid="Home"\n  psk="{s}"\n}}', "wpa_passphrase={s}", "https://bob:{s}@git.example.com", "bob:{s}@smtp.example.com:587", "auth-user-pass\nbob\n{s}", '<server><id>r</id><username>b</username><password>{s}</password></server>',
        "bindpw {s}", "rootpw {s}", "olcRootPW: {s}", "bind_password={s}", "smtp_sasl_password_maps = static:bob:{s}", "[smtp.example.com]:587 bob:{s}", 'bob : PLAIN "{s}"', ': PSK "{s}"', 'bob Cleartext-Password := "{s}"',
        "secret = {s}  # radius client", "password {s}", "requirepass {s}", "user bob on >{s} ~*", "[global]\n\tpasswd = {s}", "credentials = bob:{s}", "username=bob\npassword={s}\ndomain=WORK", "ansible_ssh_pass={s}", "db1 ansible_host=h ansible_password={s}",
        "<Password>{s}</Password>", "<string name=\"db_password\">{s}</string>", "<key>password</key>\n<string>{s}</string>", "FTP_PASS = {s}", "spring.datasource.password={s}", "hibernate.connection.password {s}", "jdbc.password: {s}", "Password={s};Trusted_Connection=False",
        "<connectionStrings><add connectionString=\"Server=h;User Id=sa;Password={s};\"/></connectionStrings>", "server.ssl.key-store-password={s}", "mail.pass={s}", "storePassword={s}\nkeyAlias=upload", "signingConfig {{ storePassword '{s}' }}", "keyPassword \"{s}\"",
    )),
    "network-gear": (_password, (
        "enable secret 0 {s}", "enable password {s}", "username bob privilege 15 secret 0 {s}", "snmp-server community {s} RW", "set snmp community {s} authorization read-only", "crypto isakmp key {s} address 0.0.0.0",
        " pre-shared-key {s}", "pre-shared-key ascii-text \"{s}\"", "tacacs-server key {s}", "radius-server host 10.0.0.1 key {s}", " wpa-psk ascii 0 {s}", "set passphrase {s}", "ip ospf message-digest-key 1 md5 {s}", "neighbor 10.0.0.1 password {s}",
        "set system root-authentication plain-text-password-value {s}", "/user add name=bob password={s} group=full", "config wireless\n option key '{s}'", "set psksecret {s}", "key-string {s}", "ppp chap password 0 {s}",
    )),
    "talk": (_password, (
        "I have set the admin password to {s} for now", "the db password we use on staging is {s}, user is app", "password for bob on the jump host: {s}", "log in as bob with {s} as the password", "login: bob, pw: {s}", "creds: bob / {s}",
        "credentials are bob/{s}", "user bob pass {s}", "ssh root@10.0.0.5 (password {s})", "username: bob password: {s}", "pw={s}", "you can use bob / {s} to log in", "it's {s} (the wifi password)", "try {s}, that's the old password", "bob's password was {s} until Monday",
        "The passphrase of the key is `{s}`.", "pass: {s}", "Pass: {s}", "PIN/passcode: {s}", "my pwd: {s}", "the secret is “{s}”", "root pw -> {s}", "new password - {s}", "password ({s}) works", "PASSWORD GENERATED: {s}", "sudo password on the box? {s}", "User: bob\nPassword: {s}",
        "email bob@example.com password {s}", "with username bob and password {s}", "authenticate using bob and the password {s}.", "# admin password: {s}", "// pw for the test account: {s}", "/* default password {s} */", "-- password: {s}", "<!-- password: {s} -->",
    )),
    "talk-foreign": (_password, (
        "das Passwort für die Datenbank lautet {s}", "Kennwort vom Server: {s}", "le mot de passe de la base est {s}", "mdp : {s}", "la contraseña del servidor es {s}", "clave: {s}", "a senha do banco é {s}", "la password del database è {s}", "wachtwoord is {s}", "hasło do bazy: {s}",
        "пароль от базы {s}", "пароль: {s}", "密码：{s}", "密码是 {s}", "データベースのパスワードは {s} です", "비밀번호는 {s} 입니다", "şifre: {s}", "lösenordet är {s}", "adgangskoden er {s}", "salasana on {s}", "heslo je {s}", "jelszó: {s}", "parola este {s}", "mật khẩu là {s}", "كلمة المرور هي {s}", "סיסמה: {s}",
        "mein Passwort ist jetzt {s}", "ich habe das Passwort auf {s} geändert", "j'ai changé le mot de passe en {s}", "cambié la contraseña a {s}", "数据库密码改为 {s}", "パスワード：{s}", "das Token ist {s}", "Zugangsdaten: bob / {s}", "identifiants : bob / {s}",
    )),
    "keys-talk": (_key, (
        "here is the api key for the weather service: {s}", "the token for the deploy bot is {s}", "use this key: {s}", "API key (prod): {s}", "my key is {s}, it runs out tomorrow", "bearer token {s}", "access token → {s}", "api key = {s}", "key for maps: {s}", "Your new API key: {s}", "signing secret: {s}",
        "client id is app1 and client secret is {s}", "the webhook secret should be {s}", "private key {s}", "token={s}", "Token: {s}", "the session cookie is {s}", "api-key {s} was revoked", "der API-Schlüssel ist {s}", "la clé api est {s}",
    )),
    "seed-phrase": (_seed, (
        "mnemonic: {s}", 'MNEMONIC="{s}"', "seed phrase: {s}", "Your recovery phrase is:\n\n{s}\n", "the seed phrase of the wallet is {s}", "const mnemonic = '{s}';", "Secret recovery phrase\n{s}", "wallet words: {s}", 'fromMnemonic("{s}")', "BIP39: {s}", "Please back up your seed:\n{s}",
        '"seedPhrase":"{s}"', "--mnemonic '{s}'", "ganache --wallet.mnemonic \"{s}\"", "cast wallet derive-private-key \"{s}\"", "hdwallet: {{ phrase: '{s}' }}",
    )),
    "otp-seed": (_drawn(BASE32, 32), (
        "oathtool --totp -b {s}", "pyotp.TOTP('{s}')", "otpauth://totp/App:bob?secret={s}&issuer=App", "authenticator.generate('{s}')", "Setup key: {s}", "Manual entry key: {s}", "TOTP secret {s}", "MFA_SEED={s}", "2fa secret: {s}", "Enter this code in your app: {s}", "totp_seed = '{s}'",
        "speakeasy.totp({{ secret: '{s}', encoding: 'base32' }})", '"Base32StringSeed": "{s}"', "otp key {s}",
    )),
    "recovery-codes": (_groups(LOWER + DIGITS, 5, 2), (
        "Recovery codes:\n{s}\n", "backup code: {s}", "recovery code {s} still works", "Your backup codes:\n1. {s}", "2FA recovery codes (each once):\n  - {s}", '"recovery_codes": ["{s}"]', "scratch code {s}", "one-time backup code is {s}", "emergency codes: {s}",
    )),
    "app-password": (_groups(LOWER, 4, 4), (
        "app password: {s}", "app-specific password is {s}", "--password {s}", "the app password google gave me: {s}", "SMTP_PASS={s}", "APP_SPECIFIC_PASSWORD={s}", "password = \"{s}\"",
    )),
    "app-password-spaced": (_groups(LOWER, 4, 4, " "), ('SMTP_PASS="{s}"', "app password: {s}", "EMAIL_HOST_PASSWORD = '{s}'", "my gmail app password is {s}", "MAIL_PASSWORD={s}")),
    "wallet": (made("0x", (HEX, 64)), (
        "PRIVATE_KEY={s}", "private key: {s}", "new ethers.Wallet('{s}')", "cast send --private-key {s}", "accounts: ['{s}']", "web3.eth.accounts.privateKeyToAccount('{s}')", "(0) {s} (100 ETH private key)", "Private Keys\n==================\n(0) {s}", "Account.from_key('{s}')",
    )),
    "wif": (made("L", (BASE58, 51)), ("{s}", "dumpprivkey\n{s}", "importprivkey {s}", "wif: {s}")),
    "key-array": (lambda chance: ",".join(str(chance.randrange(256)) for _ in range(64)), (
        "[{s}]", "cat id.json\n[{s}]", "const secretKey = Uint8Array.from([{s}])", "PRIVATE_KEY='[{s}]'",
    )),
    "jwk": (_drawn(URL, 43), (
        '{{"kty":"oct","k":"{s}"}}', '{{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"{s}"}}', '"kty": "oct",\n  "alg": "HS256",\n  "k": "{s}"', "{{\\\"kty\\\":\\\"oct\\\",\\\"k\\\":\\\"{s}\\\"}}", '{{"k":"{s}","kty":"oct"}}', '"d": "{s}", "kty": "OKP"',
    )),
    "code-call": (_drawn(BASE64, 43), (
        "jwt.sign(payload, '{s}')", "jwt.sign({{ id: user.id }}, \"{s}\", options)", "crypto.createHmac('sha256', '{s}')", "hmac.new(b'{s}', body, 'sha256')", "jwt.encode(claims, '{s}', algorithm='HS256')", "jwt.decode(raw, \"{s}\", ['HS256'])", "Fernet(b'{s}')",
        "expect(session.accessToken).toBe('{s}')", "assert client.token == '{s}'", "assertEquals(\"{s}\", config.getApiKey())", "assertThat(secret).isEqualTo(\"{s}\")", "Token(access='{s}')", "Credentials(id='a', value='{s}')", "client.setToken('{s}')", "new Keypair('{s}')",
        "ApiKeyAuth(\"{s}\")", "headers.set('X-Api-Key', '{s}')", "req.Header.Set(\"X-Auth-Token\", \"{s}\")", "os.Setenv(\"API_KEY\", \"{s}\")", "monkeypatch.setenv('API_KEY', '{s}')", "static final String API_KEY = \"{s}\";", "#define API_KEY \"{s}\"", "const api_key: []const u8 = \"{s}\";", "let apiKey: String = \"{s}\"",
        "val apiKey: String = \"{s}\"", "buildConfigField(\"String\", \"API_KEY\", \"\\\"{s}\\\"\")", "private string _apiKey = @\"{s}\";", "pub const API_KEY: &'static str = \"{s}\";", "(def api-key \"{s}\")", "(setq openai-api-key \"{s}\")", "api_key <- \"{s}\"", "Sys.setenv(API_KEY = \"{s}\")", "my $api_key = '{s}';", "$apiKey = '{s}';", "@api_key = '{s}'",
        "const char *api_key = \"{s}\";", "std::string api_key{{\"{s}\"}};", "let api_key = \"{s}\" in", "apiKey = \"{s}\" :: String", "config :app, api_key: \"{s}\"", "secret_key_base: \"{s}\"", "createClient(url, '{s}') // service key", "var token string = `{s}`", "api_key = r'{s}'", "api_key: str = '{s}'", "ApiKey = \"{s}\",", "{{:api-key \"{s}\"}}",
    )),
    "printed": (_password, (
        "array(2) {{\n  [\"password\"]=>\n  string(16) \"{s}\"\n}}", "  [password] => {s}", "{{'user': 'bob', 'password': '{s}'}}", "Config(user='bob', password='{s}')", "#<Config user=\"bob\", password=\"{s}\">", "%{{password: \"{s}\"}}", "&{{User:bob Password:{s} Port:22}}", "Config {{ user: \"bob\", password: \"{s}\" }}",
        "Config{{user=bob, password={s}}}", "password = '{s}' (str)", "(Pdb) password\n'{s}'", ">>> settings.DB_PASSWORD\n'{s}'", "irb> ENV['DB_PASSWORD']\n=> \"{s}\"", "> process.env.DB_PASSWORD\n'{s}'", "password: '{s}',\n  port: 5432", "DEBUG password={s!r}".replace("!r", ""), "KeyError: password='{s}'", "    password = \"{s}\"  # locals",
        "DB_PASSWORD             {s}", "      DB_PASSWORD:  {s}", "DB_PASSWORD: '{s}'", "declare -x DB_PASSWORD=\"{s}\"", "Env: [\"DB_PASSWORD={s}\"]", "password => {s}", "password|{s}", "+ export DB_PASSWORD={s}", "++ DB_PASSWORD={s}", "set DB_PASSWORD={s}", "DB_PASSWORD={s}\\0PATH=/bin", "\"DB_PASSWORD\" = \"{s}\"",
        "dbPassword:\t{s}", "password\t{s}", "Password . . . . . : {s}", "Password ........ {s}", "password » {s}", "Name  : DB_PASSWORD\nValue : {s}", "Key Content            : {s}",
    )),
    "coloured": (_password, (
        "\x1b[1mpassword\x1b[0m: \x1b[33m{s}\x1b[0m", "\x1b[32mDB_PASSWORD\x1b[0m=\x1b[36m{s}\x1b[0m", "password\x1b[2m=\x1b[0m{s}", "\\u001b[36mpassword\\u001b[39m: \\u001b[32m'{s}'\\u001b[39m",
    )),
    "http": (_key, (
        "X-Vault-Token: {s}", "X-Shopify-Access-Token: {s}", "X-Figma-Token: {s}", "X-Auth-Key: {s}", "Authorization: Token {s}", "Authorization: token {s}", "Authorization: ApiKey {s}", "Authorization: {s}", "Authorization: Bearer {s}", "authorization: GoogleLogin auth={s}", "Proxy-Authorization: Bearer {s}",
        "X-Amz-Security-Token: {s}", "apikey: {s}", "x-goog-api-key: {s}", "X-Plex-Token={s}", "X-Gitlab-Token: {s}", "X-Hub-Signature-Key: {s}", "x-rapidapi-key: {s}", "Cookie: session={s}", "Set-Cookie: auth_token={s}; HttpOnly", "x-functions-key: {s}", "PRIVATE-TOKEN: {s}", "DD-API-KEY: {s}", "X-API-KEY {s}",
        "POST /login\n\ngrant_type=password&client_secret={s}", "?code=1&client_secret={s}", "GET /v1/a?api_key={s}", "GET /a?apikey={s}&b=1", "GET /a?token={s}", "GET /a?auth={s}", "https://x.example.com/#access_token={s}&type=bearer", "https://x.example.com/reset-password?token={s}", "https://x.example.com/invite/accept?token={s}",
        "https://x.example.com/magic-link?code={s}", "https://x.example.com/reset/{s}", "https://x.example.com/verify-email/{s}", "https://x.example.com/magic/{s}", "https://x.example.com/unsubscribe?sig={s}", "wss://x.example.com/?access_token={s}", "X-Signature: {s}", "\"set-cookie\": [\"sid={s}; Path=/\"]",
    )),
    "vendor-address": (_drawn(HEX, 32), (
        "https://mainnet.infura.io/v3/{s}", "https://eth-mainnet.g.alchemy.com/v2/{s}", "https://hooks.zapier.com/hooks/catch/123456/{s}/", "https://maker.ifttt.com/trigger/a/with/key/{s}", "https://events.pagerduty.com/integration/{s}/enqueue", "https://api.pushcut.io/{s}/notifications/a",
        "https://hook.eu1.make.com/{s}", "https://rpc.ankr.com/eth/{s}", "https://outlook.office.com/webhook/{s}", "https://chat.googleapis.com/v1/spaces/A/messages?key=a&token={s}", "https://node.quiknode.pro/{s}/",
    )),
    "vendor-uuid": (_uuid, (
        "RGAPI-{s}", "HEROKU_API_KEY={s}", "SNYK_TOKEN={s}", "x-api-key: {s}", "\"client_secret\": \"{s}\"", "POSTMARK_SERVER_TOKEN={s}", "consul_http_token={s}", "NOMAD_TOKEN={s}", "waka_{s}", "xaat-{s}", "CONSUL_HTTP_TOKEN: {s}", "api_key = \"{s}\"", "https://open.feishu.cn/open-apis/bot/v2/hook/{s}",
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={s}", "PVEAPIToken=root@pam!ci={s}", "sentinel --api-token {s}", "amzn.mws.{s}",
    )),
    "azure": (made((BASE64, 76), "+ASt", (BASE64, 6), "=="), (
        '[{{"keyName":"key1","permissions":"FULL","value":"{s}"}}]', "key1    FULL    {s}", "AZURE_KEY={s}", "az storage blob list --account-key {s}", "account_key: {s}", "AccountKey={s}",
    )),
    "aws": (_drawn(BASE64, 40), (
        "aws configure\nAWS Access Key ID [None]: AKIAJ7K2M5N3P6Q4R2S7\nAWS Secret Access Key [None]: {s}", "AWS Secret Access Key [****************abcd]: {s}", '"SecretAccessKey": "{s}"', "aws_secret_access_key = {s}", "secretAccessKey: '{s}'", "AWS_SECRET_KEY={s}", "SecretKey\t{s}", "aws configure set aws_secret_access_key {s}",
        "Access key ID,Secret access key\nAKIAJ7K2M5N3P6Q4R2S7,{s}", "ACCESSKEY\tAKIAJ7K2M5N3P6Q4R2S7\tActive\t{s}", "<SecretAccessKey>{s}</SecretAccessKey>", "awsSecret: {s}", "key AKIAJ7K2M5N3P6Q4R2S7 secret {s}",
    )),
    "saved-settings": (_drawn(HEX, 64), (
        "secret_key_base: {s}", "SECRET_KEY_BASE={s}", "APP_KEY=base64:{s}", "define('AUTH_KEY', '{s}');", "define( 'NONCE_SALT', '{s}' );", "ENCRYPTION_KEY={s}", "COOKIE_SECRET={s}", "session.secret={s}", "'secret' => '{s}'", "blowfish_secret'] = '{s}'", "NUXT_SESSION_PASSWORD={s}", "AUTH_SECRET={s}", "jwt_secret={s}", "MEILI_MASTER_KEY={s}",
        "$wgSecretKey = \"{s}\";", "wgUpgradeKey = '{s}'", "hash_salt'] = '{s}'", "N8N_ENCRYPTION_KEY={s}", "erlang_cookie={s}", "-setcookie {s}", "minio_root_password={s}", "keyfile {s}", "kms_master_key={s}", "local_key: {s}", "keyMaterial={s}", "--unseal-key={s}", "Unseal Key 1: {s}", "Initial Root Token: {s}", "cluster_secret={s}", "gossip_key = {s}", "macaroon={s}",
        "api_hash = '{s}'", "shared_key: {s}", "presharedkey={s}", "join token: {s}", "rpcpassword={s}", "secret_token={s}", "webhook_secret: {s}", "hmac_secret={s}", "pepper={s}", "PASSWORD_PEPPER={s}", "ikey={s}\nskey={s}", "oauth2_client_secret: {s}",
    )),
}  # fmt: skip
"""A maker of secrets and the lines it is put into, for each family."""

PREFIXES: dict[str, Callable[[Chance], str]] = {
    "adobe": made("p8e-", (ALNUM, 32)), "clickhouse": made("4b1d", (ALNUM, 38)), "defined": made("dnkey-", (URL, 26), "-", (URL, 52)), "frameio": made("fio-u-", (URL, 64)),
    "harness": made("pat.", (URL, 22), ".", (HEX, 24), ".", (ALNUM, 20)), "octopus": made("API-", (UPPER + DIGITS, 26)), "openshift": made("sha256~", (URL, 43)), "swarm": made("SWMTKN-1-", (LOWER + DIGITS, 50), "-", (LOWER + DIGITS, 25)),
    "k3s": made("K10", (HEX, 64), "::server:", (HEX, 32)), "rancher": made("token-", (LOWER + DIGITS, 5), ":", (LOWER + DIGITS, 54)), "woocommerce": made("cs_", (HEX, 40)), "deno": made("ddp_", (ALNUM, 36)), "honeycomb": made("hcaik_01", (LOWER + DIGITS, 56)),
    "maxmind": made((ALNUM, 6), "_", (ALNUM, 29), "_mmk"), "yandex": made("AQVN", (URL, 35)), "yandex-old": made("y0_AgAAAA", (URL, 50)), "mandrill": made("md-", (URL, 22)), "braintree": made("access_token$production$", (LOWER + DIGITS, 16), "$", (HEX, 32)), "lwa": made("amzn1.oa2-cs.v1.", (HEX, 64)),
    "stytch": made("secret-live-", (URL, 36), "="), "ghost": made((HEX, 24), ":", (HEX, 64)), "twitter": made("AAAAAAAAAAAAAAAAAAAAA", (ALNUM, 30), "%3D", (ALNUM, 50)), "scaleway-tk": made("tk-us-", (URL, 48)), "intra42": made("s-s4t2ud-", (HEX, 64)), "settlemint": made("sm_pat_", (ALNUM, 16)),
    "okta": made("00", (URL, 40)), "bitwarden": made("0.48c78342-1635-48a6-accd-afbe01336365.", (ALNUM, 30), ":", (BASE64, 22), "=="), "convex": made("prod:happy-animal-123|", (ALNUM, 60)), "infisical": made("st.", (HEX, 24), ".", (HEX, 32), ".", (HEX, 32)), "jenkins": made("11", (HEX, 32)), "unleash": made("default:production.", (HEX, 56)),
    "wakatime": made("waka_", (HEX, 8), "-", (HEX, 4), "-4", (HEX, 3), "-a", (HEX, 3), "-", (HEX, 12)), "lnd": made("0201036c6e64", (HEX, 200)), "klaviyo": made("pk_", (HEX, 34)), "clickup": made("pk_", (DIGITS, 8), "_", (UPPER + DIGITS, 32)), "cloudflared": made("eyJhIjoi", (ALNUM, 120)), "new-vendor": made("acme_", (ALNUM, 36)), "new-vendor-dash": made("acme-", (ALNUM, 40)),
    "new-vendor-long": made("acme_prod_eu_", (ALNUM, 40)), "temporal": made("tmprl_", (ALNUM, 32), "_", (ALNUM, 32)), "chroma": made("ck-", (ALNUM, 44)), "daytona": made("dtn_", (HEX, 64)), "portkey": made("pk-", (ALNUM, 27), "="), "openai-admin": made("sk-admin-", (URL, 60)), "zai": made((HEX, 32), ".", (ALNUM, 16)), "cursor": made("key_", (HEX, 64)), "langfuse-public": made("sk-lf-", (HEX, 8), "-", (HEX, 4), "-4", (HEX, 3), "-a", (HEX, 3), "-", (HEX, 12)),
}  # fmt: skip
"""Keys of further providers; some have a form of their own, the rest follow the common shape."""

AROUND = (
    "TOKEN={s}",
    "token: {s}",
    '"apiKey": "{s}"',
    "export API_KEY='{s}'",
    "my key is {s}",
    "Authorization: Bearer {s}",
)
FAMILIES["prefixes-named"] = (lambda chance: chance.choice(list(PREFIXES.values()))(chance), AROUND)
FAMILIES["told"] = (_told_password, TOLD)
FAMILIES["given passwords"] = (_password, GIVEN_PASSWORDS)
FAMILIES["given keys"] = (_key, GIVEN_KEYS)

BENIGN_FAMILIES: dict[str, tuple[str, ...]] = {
    "sealed": ("    password: AgB{b300}", "password: ENC[AES256_GCM,data:{b20},iv:{b24},tag:{b24},type:str]", "password: ENC({b44})", "password: '{cipher}{h96}'", "db_password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  {h80}", "secret: vault:v1:{b80}", "token: encrypted:{b120}", "  secure: {b172}=", "password = \"{AES}{b44}\"",
               "encryptedPassword: {b88}", "encrypted_api_key={b88}", "  apiKey: U2FsdGVkX1{b40}", "password: AQICAHh{b160}", "ciphertext: {b64}", "secret: EJ[1:{b43}=:{b32}:{b40}]", "db_password: ENC[PKCS7,{b200}]", "token: gAAAAAB{u120}"),
    "hashes": ("password: $2y$10${a53}", "password_digest: {h64}", "root:$6${a16}${a86}:19000:0:99999:7:::", "bob:$apr1${a8}${a22}", "bob:{SHA}{b27}=", "CREATE ROLE a PASSWORD 'SCRAM-SHA-256$4096:{b22}=={b43}=:{b43}='", "ALTER ROLE a PASSWORD 'md5{h32}'", "IDENTIFIED BY PASSWORD '*{H40}'", "enable secret 5 $1${a4}${a22}",
               "username bob secret 9 $9${a14}${a43}", "password hash {h64}", "token hash: {h64}", "key fingerprint SHA256:{b43}", "key fingerprint is SHA256:{b43} bob@host", "secret_sha256={h64}", "tokenHash = '{h64}'", "hash of the password is {h64}"),
    "lock-files": ('    "integrity": "sha512-{b86}==",', 'resolved "https://registry.example.com/token/-/token-1.0.0.tgz#{h40}"', "  integrity sha512-{b86}==", 'checksum = "{h64}"', "github.com/a/keychain v1.0.0 h1:{b43}=", "keyring==24.3.0 --hash=sha256:{h64}", 'content-hash = "{h64}"', "PODFILE CHECKSUM: {h40}", '"narHash": "sha256-{b43}="', "sha256 = \"{h64}\";",
                   '"secret-stack": { "version": "1.0.0", "integrity": "sha512-{b86}==" }'),
    "ids": ("token_id={uuid}", "key_id: {h40}", "kid: {a27}", '"kid":"{a27}","alg":"RS256"', "secretArn: arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-{a6}", "KMS key {uuid} enabled", "key arn:aws:kms:eu-west-1:1:key/{uuid}", "access key id AKIAIOSFODNN7EXAMPLE", "client_id={h32}", "tenant {uuid}", "api key id {uuid} was removed", "session id {uuid}",
            "trace={h32}", "etag W/\"{h40}\"", "nonce={h32}", "request-id {uuid}", "commit {h40} adds the token store", "token {h7} in the log", "x-request-id: {uuid}", '"auth_request_id": "{uuid}"', "cookie consent {d3}", "password_reset_request_id={uuid}", "for key {h16} in cache", "cache key: {h64}", "key: {h64}", "Key {h64} was evicted", "dedupe key {h40}"),
    "chain-addresses": ("ERC20 token 0x{h40} has {d3} holders", "token 0x{h40}", "token address: 0x{h40}", "public key 0x{h64}", "tx 0x{h64}", "wallet 0x{h40}", "token: '0x{h40}'", "tokenAddress = \"0x{h40}\"", "mint token {s44}", "pubkey: {s44}", "the token contract is 0x{h40}"),
    "code": ("    password: SecretStr = Field(min_length={d2})", "token: str = Field(default=None, max_length=255)", "password = models.CharField(max_length=128)", "key = f\"user:{user_id}:v2\"", "secret: Annotated[str, Depends(get_secret_v2)]", "token = await get_token(scope='read', ttl=3600)", "password: z.string().min(8).max(128)", "const token = useState<string | null>(null)",
             "token: Joi.string().required()", "auth = HTTPBasicAuth(user, pw)", "password = request.POST['password1']", "key = hashlib.sha256(data).hexdigest()", "const key = `${prefix}:${id}:v2`", "password := os.Args[2]", "Authorization: `Bearer ${token}`", "apiKey: process.env.API_KEY!,", "if token == 'Bearer':", "token.startswith('ghp_')", "key = keys[i + 1]", "let secret = Secret::new(env::var(\"S3_SECRET\")?)",
             "passwordField.sendKeys(Keys.ENTER)", "expect(token).toBe('abc')", "expect(res.body.token).toBe(undefined)", "assert token == expected_token_2", "jwt.sign(payload, secret, { expiresIn: '7d' })", "jwt.verify(token, process.env.JWT_SECRET)", "crypto.createHmac('sha256', secret).update(body)", "new Token(TokenType.IDENT, 'x1')", "Token(kind='NAME2', value='foo')", "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased-v2')",
             "class ApiKeyAuth2(AuthBase):", "def test_password_reset_token_is_sent_v2():", "setToken(response.data.accessToken2)", "PasswordEncoder encoder = new BCryptPasswordEncoder(12);", "password: { type: DataTypes.STRING(128), allowNull: false }", "token  String  @unique @db.VarChar(255)", "$password = Read-Host -AsSecureString", "password = input('Password: ')", "KEY_F13 = 0x7C", "key == KeyCode.F12", "case 'token2':", "secretKeyRef:\n  name: db-credentials-v2\n  key: password",
             "valueFrom:\n  secretKeyRef:\n    name: app-secret-2024\n    key: token", "envFrom: [{secretRef: {name: app2-secret}}]", "password: { required: true, min: 8 }", "token: { type: 'string', minLength: 32 }", "\"token\": {\"type\": \"string\", \"default\": \"\"}", "encryption:\n  key: kms", "encryption:\n  algorithm: AES256\n  key: alias/app-v2"),
    "talk": ("the password must have 12 characters", "I will rotate the token on 2026-03-14", "how do I reset the password of bob on portal-92.europe-west4.example.dev?", "the key is stored in config/keys_v2.json", "password reset for bob@example.com sent at 10:32", "the token limit is 200k, not 128k", "see RFC6750 about bearer tokens", "the secret is in vault under kv/prod/app2", "token refresh failed with HTTP401 on node-17",
             "use the key F12 to open it", "the password field has id input-7f3a", "the API key header is X-Api-Key2", "key takeaways from Q3-2025", "the passwords are hashed with sha256", "auth with OAuth2.0 is done", "the token from step2 is reused in step3", "secret santa 2025!", "my password manager is 1Password8", "password protected by AES-256-GCM", "key of the map is user2name", "pass the token as arg2 to run_v2()", "login as bob on host-12.example.com",
             "is the password correct? no, error 0x80070005", "the key bindings are in keymap.v2.json", "recovery codes are stored hashed in table mfa_codes_v2", "the seed phrase has twelve words", "write down your recovery phrase and keep it safe where nobody else can ever find it again please", "mnemonic words are checked against the list before anything else happens in this wallet code today", "backup codes: none left", "recovery code sent to b***@example.com",
             "das Passwort steht im Tresor", "le mot de passe est obligatoire", "la contraseña debe tener 8 caracteres", "пароль должен содержать 8 символов", "密码长度为8位", "credentials: see 1Password", "creds: none", "login: bob / see vault", "password: see wiki page Ops-2024", "Password: (hidden)", "password is required", "Enter password for bob@db1.example.com:", "[sudo] password for bob:", "Password for 'https://bob@git.example.com':"),
    "tables": ("| field | type | password |\n|---|---|---|\n| name | string | no |", "| key | value |\n|---|---|\n| region | eu-west-1 |\n| version | 2.1.44 |", "| token | count |\n|---|---|\n| the | 1204 |", "key,value,count\nregion,eu-west-1,12", "token,frequency\nfoo2,120", "| password | hashed with bcrypt, 12 rounds |", "| API key | required | `X-Api-Key` header |", "name,key,created\nalpha,alpha_v2,2026-01-02",
               " id | key \n----+-----\n  1 | user_12\n(1 row)", "| secret | path |\n|---|---|\n| db | kv/prod/db2 |", "NAME       TYPE     DATA   AGE\napp-secret Opaque   3      12d", "| key | sha |\n|---|---|\n| a | {h40} |", "id,token_id\n1,{uuid}", "| primary key | id |\n", "<tr><td>Password</td><td>required</td></tr>", "<th>Token</th><th>Uses</th>"),
    "commands": ("docker run -p 8080:80 -e A=1 app2", "ssh -p 2222 bob@h", "mkdir -p a/b2", "ps -a 1234", "grep -w token2 a.py", "cp -p key.pub /tmp/x2", "git log -p src/token_v2.py", "tar -xzp -f a.tgz", "openssl rand -hex 32", "openssl dgst -sha256 token.txt\nSHA256(token.txt)= {h64}", "sha256sum key.bin\n{h64}  key.bin", "git rev-parse HEAD\n{h40}", "git log --grep token --format=%H\n{h40}", "cat key.pub\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} bob",
                 "$ ls secrets\ndb_password.txt", "$ kubectl get secrets\nNAME TYPE\ndb-password-v2 Opaque", "$ cat token.py\nfrom x import TokenStore2", "$ grep -rn token src\nsrc/a2.py:12: token = 1", "$ vault status\nSealed false", "$ aws secretsmanager list-secrets\nprod/db2", "$ gh auth status\nLogged in", "$ echo $TOKEN | wc -c\n41", "$ uuidgen\n{uuid}", "net user bob /add", "mysql -u root -p shop2", "curl -u $USER:$PASS x", "htpasswd -c .htpasswd bob", "passwd bob", "psql -p 5433 -U app2",
                 "chown 1000:1000 a", "docker build --build-arg TOKEN .", "npm config set //r.example.com/:_authToken ${NPM_TOKEN}", "signtool sign /f c.pfx /t http://ts.example.com a.exe", "snmp-server location rack12", "username bob privilege 15", "key chain OSPF2", "crypto key generate rsa modulus 2048", "adb shell input text hello2", "kubectl create secret generic app2 --from-file=a", "keytool -list -keystore a2.jks", "git push -u origin token-refresh-2", "redis-cli -a \"$REDIS_PASS\" ping"),
    "web": ("<input type=\"password\" name=\"pw\" value=\"\">", "<input name=\"csrf_token\" value=\"{a43}\">", "<meta name=\"csrf-token\" content=\"{a43}\">", "<script nonce=\"{a22}\">", "https://x.example.com/items/{h24}", "https://x.example.com/share/{a11}", "https://cdn.example.com/a.{h20}.js", "background: url(data:image/png;base64,iVBORw0KGgo{b200})", ".token-{h6} {{ color: red }}", "/assets/key-{a8}.js", "https://www.youtube.com/watch?v={a11}", "https://docs.example.com/d/{a44}/edit", "?page_token={a40}", "?v={h20}",
            "https://github.com/a/b/commit/{h40}", "https://x.example.com/a?key=home&x=1", "\"mappings\": \"{b120}\"", "//# sourceMappingURL=token.js.map", "https://example.com/?utm_token=spring2025", "https://x.example.com/reset-password?token=<token>", "/api/v1/keys/{uuid}"),
    "untold": UNTOLD,
    "apart": APART,
    "agent": ('"signature":"{b300}"', '"tool_use_id":"toolu_01{a22}"', '"uuid":"{uuid}","parentUuid":"{uuid}"', '"requestId":"req_011{a21}"', '"promptCacheKey":"{uuid}"', '"prompt_cache_key":"{uuid}"', '"encrypted_content":"gAAAAAB{u200}"', '"input_tokens":{d4},"cache_read_input_tokens":{d5}', '"session_id":"{uuid}"', '"messageId":"{uuid}","snapshot":{}', '"id":"rs_{h50}"', '"call_id":"call_{a24}"', "chatcmpl-{a29}", '"system_fingerprint":"fp_{h10}"', "file-{a22}", "asst_{a24}", "thread_{a24}", "gen-{d10}-{a20}"),
}  # fmt: skip
"""Lines that hold no secret; {hN} is hex, {HN} hex in capitals, {aN} letters and digits, and so on."""
