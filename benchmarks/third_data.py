"""Values that look random and are no secrets: hashes, ids, public keys, images, sealed values."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["DATA"]

EACH = 30

DATA = read_kinds(
    r"""
== data-hashes
«hex:64»  «noun»-«ver».tar.gz
MD5 («noun».iso) = «hex:32»
sha256: «hex:64»
SHA1: «HEX:40»
"hash": "«hex:32»"
content_hash=«hex:40»
the checksum of the file is «hex:64», same as upstream
ETag: "«hex:32»"
cache key: node-modules-linux-«hex:64»
key: v1-deps-{{ checksum "package-lock.json" }}
merkle root «hex:64»
"sourceMapHash": "«b64:43»="
script-src 'sha256-«b64:43»='
cacheKey: 'ls-«hex:16»'
fingerprint = «hex:40»
== data-ids
«uuid»
id: «uuid»
request_id=«uuid» «noun»_id=«n»
01J«up:23»
trace-id: «hex:32»
tenant «uuid», subscription «uuid»
"client_id": "«uuid»"
ObjectId('«hex:24»')
pod/«svc»-«hex:9»-«low:5» deleted
AWS account «num:12», vpc-0«hex:16»
«num:12»-«low:32».apps.googleusercontent.com
arn:aws:iam::«num:12»:role/«svc»-«noun»
thread «num:17», channel C0«up:9»
tracking number 1Z«up:16»
price_1«an:23»
experiment «noun»-«adj»-«low:6»
run id: «low:8»
issue «up:3»-«n», PR #«n», commit «hex:40»
== data-public-keys
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«b64:43» «user»@«svc»
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ«b64:340»= «email»
«host» ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«b64:43»
-----BEGIN PUBLIC KEY-----↵MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A«b64:32»↵«lines:4»↵-----END PUBLIC KEY-----
-----BEGIN CERTIFICATE-----↵MIID«b64:60»↵«lines:6»↵-----END CERTIFICATE-----
-----BEGIN PGP PUBLIC KEY BLOCK-----↵↵mQINBG«b64:58»↵«lines:4»↵=«b64:4»↵-----END PGP PUBLIC KEY BLOCK-----
-----BEGIN CERTIFICATE REQUEST-----↵MIIC«b64:60»↵«lines:3»↵-----END CERTIFICATE REQUEST-----
PublicKey = «b64:42»0=
age1«low:58»
256 SHA256:«b64:43» «user»@«svc» (ED25519)
certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSU«b64:200»
-----BEGIN PGP SIGNATURE-----↵↵iQIzBAABCgAdFiEE«b64:48»↵«lines:3»↵=«b64:4»↵-----END PGP SIGNATURE-----
public key: «b64:43»=
minisign public key: RW«b64:54»
SHA1 Fingerprint=«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»:«HEX:2»
contract 0x«hex:40» on chain «n»
Bitcoin address bc1q«low:38»
== data-base64-content
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA«b64:200-600»=
<img src="data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmci«b64:200»" />
{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAA«b64:400»"}}
src: url(data:font/woff2;base64,d09GMgABAAAAA«b64:300»==) format("woff2");
//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpb«b64:200»
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0a«b64:120»
"thumbnail": "iVBORw0KGgoAAAANSUhEUgAA«b64:200»"
"mappings": ";;AAAA,«up:4»;AAC«up:3»,«up:4»,CAAC;EACvB,MAAM,«up:3»GAAG"
JVBERi0xLjcKJeLjz9MKMSAwIG9iago8PC«b64:200»
background:url(data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)
== data-encrypted
$ANSIBLE_VAULT;1.1;AES256↵«num:80»↵«num:80»↵«num:46»
password: ENC[AES256_GCM,data:«b64:22»==,iv:«b64:43»=,tag:«b64:22»==,type:str]
spec:↵  encryptedData:↵    password: AgB«b64:240»==
env:↵  global:↵    - secure: "«b64:340»="
-----BEGIN AGE ENCRYPTED FILE-----↵YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOS«b64:22»↵«lines:3»↵-----END AGE ENCRYPTED FILE-----
-----BEGIN PGP MESSAGE-----↵↵hQIMA«b64:59»↵«lines:4»↵=«b64:4»↵-----END PGP MESSAGE-----
vault:v1:«b64:80»==
kms_ciphertext: AQICAHh«b64:180»==
sops:↵  mac: ENC[AES256_GCM,data:«b64:88»,iv:«b64:43»=,tag:«b64:22»==,type:str]
password: ENC(«b64:43»=)
api_key: !vault |↵  $ANSIBLE_VAULT;1.1;AES256↵  «num:80»↵  «num:60»
== data-redacted
password: ********
"token": "****«an:4»"
Authorization: Bearer ***
AWS_SECRET_ACCESS_KEY=****************«up:4»
api_key=[REDACTED]
postgres://«user»:***@«host»:5432/«db»
"password": "[FILTERED]"
Parameters: {"user"=>{"email"=>"[FILTERED]", "password"=>"[FILTERED]"}}
secret: <redacted>
token: ghp_****
«ENV»_TOKEN: ***
password=xxxxx
sk-...«an:4»
"apiKey": "••••••••••••"
export DB_PASSWORD=<hidden>
password = (sensitive value)
token=<REDACTED_TOKEN>
Password: (not shown)
'password': '**********'
== data-minified
!function(e,t){"object"==typeof exports?module.exports=t():e.«noun»=t()}(this,function(){var r={},n=«n»;return r})
var «az:1»=function(t){return t&&t.__esModule?t:{default:t}}(n(«n»)),«az:1»=n(«n»);
e.password&&(t.token=e.token,r.key=n(e.key)),i.push(«n»)
.a«hex:4»{display:flex;color:#«hex:6»}.b«hex:4»>li{margin:0 «n:1-9»px}
(()=>{"use strict";var e,t={«n»:(e,t,n)=>{n.d(t,{Z:()=>r});const r="«kebab»"}};})();
const t="token",n="password",r={[t]:void 0,[n]:null};
webpackJsonp([«n»],{"«an:4»":function(t,e){},"«an:4»":function(t,e,n){"use strict"}});
self.__next_f.push([1,"«n:1-9»:I[«n»,[\"«n»\",\"static/chunks/«hex:16».js\"],\"default\"]\n"])
== data-numbers
[0.0«num:6», -0.«num:7», 0.«num:7», 0.«num:6», -0.0«num:6»]
00000«hex:3»0: «hex:4» «hex:4» «hex:4» «hex:4» «hex:4» «hex:4» «hex:4» «hex:4»  ................
epoch «n:1-30» loss 0.«num:4» acc 0.«num:4» tokens/s «n»
«n»,«n»,«n».«num:2»,«adj»,«date»
|  «noun»  | «n» | «n».«num:1»% | +«n:1-20» |
BenchmarkDecode-8   «n»   «n» ns/op   «n» B/op   «n:1-30» allocs/op
0x«hex:8»: mov eax, dword ptr [rbp - 0x«hex:2»]
ISBN 978-3-«num:2»-«num:6»-«num:1»
p50=«ms» p95=«ms» p99=«ms» key=«noun»
version «ver» (build «num:8»)
== data-translations
"auth.password.label": "Password",
"password": "Passwort", "password_repeat": "Passwort wiederholen"
login.password.placeholder=Enter your password
"forgotPassword": "Mot de passe oublié ?"
token.expired=Your session has expired. Please sign in again.
msgid "Wrong password"↵msgstr "Falsches Passwort"
<string name="password_hint">Contraseña</string>
"api_key_help": "You will find the key on your account page",
errors.password.too_short: "must have at least %{count} characters"
"secret": "Geheimnis", "token": "Token", "key": "Schlüssel"
'password.required' => 'The password field is required.',
== data-mcp-and-tools
{"name":"«snake»","description":"«verb» the «noun»","inputSchema":{"type":"object","properties":{"token":{"type":"string","description":"Page token of the previous answer"}}}}
{"jsonrpc":"2.0","id":«n»,"result":{"content":[{"type":"text","text":"«verb» «noun»: done"}]}}
"permissions": {"allow": ["Bash(npm run «verb»:*)", "Read(«dir»/**)"]}
{"mcpServers":{"«svc»":{"command":"npx","args":["-y","@«svc»/mcp"],"env":{"«ENV»_TOKEN":"${«ENV»_TOKEN}"}}}}
<system-reminder>The file «path» was changed. Do not mention this to the user.</system-reminder>
<command-name>/«verb»</command-name><command-args>«noun»</command-args>
context: «n»k/200k tokens («n:1-99»%)
{"session_id":"«uuid»","hook_event_name":"PreToolUse","tool_name":"«tool»"}
"file_path":"/code/«svc»/src/auth/password.ts","old_string":"password: string","new_string":"password: SecretString"
""",
    EACH,
)
