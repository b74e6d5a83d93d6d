"""Data that looks random and is none to hide: hashes, ids, public keys, images, ciphertext."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["DATA"]

COUNT = 40

DATA_BLOCKS: dict[str, str] = {
    "lock_files": r"""
      "integrity": "sha512-‹b64 64›",
  resolved "https://npm.‹org›.dev/‹lib›/-/‹lib›-‹ver›.tgz#‹hex 40›"⏎  integrity sha512-‹b64 64›
    resolution: {integrity: sha512-‹b64 64›}
checksum = "‹hex 64›"
‹lib›==‹ver› \⏎    --hash=sha256:‹hex 64› \⏎    --hash=sha256:‹hex 64›
github.com/‹org›/‹lib› v‹ver› h1:‹b64 32›
    {file = "‹lib›-‹ver›-py3-none-any.whl", hash = "sha256:‹hex 64›"},
"content-hash": "‹hex 32›",
  ‹lib› (‹ver›)⏎    sha256=‹hex 64›
"narHash": "sha256-‹b64 32›", "rev": "‹hex 40›"
{ name = "‹lib›", version = "‹ver›", source = { registry = "https://pkg.‹org›.dev/simple" } }
  checksum: 10c0/‹hex 128›
"‹lib›": ["‹lib›@‹ver›", "", {}, "sha512-‹b64 64›"],
""",
    "hashes": r"""
‹hex 64›  ‹app›-‹ver›.tar.gz
MD5 (‹file›) = ‹hex 32›
sha256:‹hex 64›
SHA256(‹file›)= ‹hex 64›
$ git rev-parse HEAD⏎‹hex 40›
ETag: "‹hex 32›"
commit=‹hex 40› dirty=false
"digest": "sha256:‹hex 64›",
cache key: ‹app›-‹hex 64›
blake3 ‹hex 64› ‹path›
crc32 ‹hex 8› size ‹n 100 99999› ‹file›
tree hash ‹hex 40›, parent ‹hex 40›
""",
    "ids": r"""
"id": "‹uuid›",
order_id=‹uuid› status=paid total=‹n 10 999›.00
{"id":"msg_01‹alnum 22›","type":"message","role":"assistant","usage":{"input_tokens":‹n 1 9999›,"output_tokens":‹n 1 999›}}
"tool_use_id": "toolu_01‹alnum 22›"
chatcmpl-‹alnum 29›
"call_id":"call_‹alnum 24›"
run_id: ‹upper 26›
"_id": ObjectId("‹hex 24›")
https://www.notion.so/‹org›/Plan-‹hex 32›
deployment dpl_‹alnum 28› is ready
cus_‹alnum 14› in_1‹alnum 23› evt_1‹alnum 23›
job ‹digits 11› on runner ‹app›-‹n 1 99› finished in ‹n 1 99› s
Execution arn:aws:states:‹region›:‹digits 12›:execution:‹app›:‹uuid›
""",
    "transcript": r"""
{"parentUuid":"‹uuid›","isSidechain":false,"type":"assistant","cwd":"/code/‹app›","gitBranch":"‹branch›","uuid":"‹uuid›"}
{"type":"tool_result","tool_use_id":"toolu_01‹alnum 22›","content":"     1→import os\n     2→\n     3→token = os.environ[\"‹KEYVAR›\"]\n"}
{"type":"tool_use","id":"toolu_01‹alnum 22›","name":"Grep","input":{"pattern":"password|token|secret","path":"/code/‹app›/‹dir›"}}
{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"rg -n 'api_key' ‹path›\"]}","call_id":"call_‹alnum 24›"}
{"type":"reasoning","summary":[{"type":"summary_text","text":"**Checking token refresh in ‹app›**"}]}
{"timestamp":"‹at›","type":"event_msg","payload":{"type":"token_count","info":{"total_tokens":‹n 100 99999›}}}
{"name":"Edit","input":{"file_path":"/code/‹app›/‹file›","old_string":"def login(user, password):","new_string":"def login(user: User, password: str) -> Token:"}}
{"name":"TodoWrite","input":{"todos":[{"content":"Hash the password in ‹path›","status":"pending"}]}}
"usage":{"input_tokens":‹n 1 99›,"cache_creation_input_tokens":‹n 100 9999›,"cache_read_input_tokens":‹n 100 99999›,"output_tokens":‹n 1 999›}
"toolUseResult":{"stdout":"‹n 1 99› passed in ‹n 1 9›.‹n 10 99›s","stderr":"","interrupted":false}
     ‹n 1 9›→# ‹app›⏎    10→def get_secret(name: str) -> str:⏎    11→    return vault.read(name)
""",
    "api_json": r"""
{"id": ‹n 1 9999›, "email": "‹mail›", "created_at": "‹at›", "has_password": true}
{"items":[{"sku":"‹upper 8›","qty":‹n 1 9›,"key":"‹app›"}],"next_page_token":null,"total":‹n 1 99›}
{"object":"list","data":[{"id":"‹app›-embedding","object":"model","created":‹digits 10›}]}
{"scopes":["‹app›:read"],"token_type":"Bearer","expires_in":‹n 60 9999›}
"password": {"type": "string", "format": "password", "minLength": ‹n 8 20›},
"securitySchemes": {"‹svc›Auth": {"type": "apiKey", "in": "header", "name": "X-API-Key"}}
{"node_id":"MDQ6VXNlcj‹alnum 8›","login":"‹first›","id":‹digits 7›,"site_admin":false}
{"error":"invalid_grant","error_description":"The refresh token is invalid or expired (‹app›)."}
{"sha":"‹hex 40›","url":"https://api.github.com/repos/‹org›/‹app›/git/trees/‹hex 40›"}
{"key":"‹app›.timeout","value":‹n 1 99›,"updated_by":"‹first›"}
{"embedding":[0.0‹digits 6›,-0.0‹digits 7›,0.0‹digits 6›,-0.1‹digits 6›],"index":‹n 0 9›}
{"keys":{"primary":"id","sort":"created_at"},"table":"‹app›"}
""",
    "public_keys": r"""
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹b64 33›‹alnum 24› ‹first›@‹org›
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ‹alnum 340› ‹mail›
‹host› ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹alnum 43›
-----BEGIN PUBLIC KEY-----⏎‹pem 4 nl›⏎-----END PUBLIC KEY-----
-----BEGIN CERTIFICATE-----⏎‹pem 10 nl›⏎-----END CERTIFICATE-----
"cert": "-----BEGIN CERTIFICATE-----\n‹pem 6 esc›\n-----END CERTIFICATE-----\n",
{"kty":"RSA","use":"sig","kid":"‹uuid›","n":"‹b64u 342›","e":"AQAB"}
{"kty":"EC","crv":"P-256","x":"‹b64u 43›","y":"‹b64u 43›","kid":"‹alnum 20›"}
[Peer]⏎PublicKey = ‹b64 32›⏎AllowedIPs = ‹ip›/32
256 SHA256:‹b64u 43› ‹first›@‹org› (ED25519)
# public key: age1‹lower 58›
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1J‹b64 300›
untrusted comment: minisign public key ‹HEX 16›⏎RW‹b64 40›
pub   ed25519 2024-0‹n 1 9›-1‹n 0 9› [SC]⏎      ‹HEX 40›⏎uid           ‹title first› <‹mail›>
0x‹hex 40› is the address of the contract ‹title app›
""",
    "images": r"""
data:‹mime›;base64,iVBORw0KGgoAAAANSUhEUgAA‹b64 240›
<img src="data:‹mime›;base64,‹b64 300›" alt="‹app›">
src: url(data:font/woff2;charset=utf-8;base64,d09GMgABAAAAA‹b64 240›) format('woff2');
{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAA‹b64 400›"}}
"image/png": "iVBORw0KGgoAAAANSUhEUgAA‹b64 300›\n",
background: url("data:image/svg+xml;base64,PHN2ZyB4bWxucz0i‹b64 150›") no-repeat;
//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpb‹b64 200›
const wasm = "AGFzbQEAAAAB‹b64 300›";
"thumbnail": "/9j/4AAQSkZJRgABAQ‹b64 240›"
favicon: data:image/x-icon;base64,AAABAAEAEBA‹b64 180›
""",
    "minified": r"""
!function(e,t){"object"==typeof exports?module.exports=t():e.‹title app›=t()}(this,function(){var n=‹n 1 99›;return{k:function(e){return e.key===n}}});
var a=‹n 1 99›,b=function(e){return e.token?e.token:null},c=[‹n 1 99›,‹n 1 99›,‹n 1 99›];
"mappings":"AAAA,‹letters 4›,‹letters 4›,‹letters 4›;‹letters 5›,‹letters 4›,‹letters 5›;;‹letters 4›"
(self.webpackChunk_‹app›=self.webpackChunk_‹app›||[]).push([[‹n 100 999›],{‹n 1000 9999›:(e,t,n)=>{n.d(t,{Z:()=>r});const r=n(‹n 1000 9999›)}}]);
.‹lower 6›{margin:0}.‹lower 6›:hover{color:#‹hex 6›}.‹lower 6›>input[type=password]{width:‹n 10 99›%}
const l=t=>{let{password:e,onChange:n}=t;return(0,r.jsx)("input",{type:"password",value:e,maxLength:‹n 10 99›,onChange:n})};
chunk-‹upper 8›.js chunk-‹upper 8›.js main-‹upper 8›.js
import{a as e,b as t}from"./chunk-‹upper 8›.js";export{e as token,t as key_‹n 1 99›};
""",
    "ciphertext": r"""
db_password: ENC[AES256_GCM,data:‹b64 18›,iv:‹b64 32›,tag:‹b64 16›,type:str]
$ANSIBLE_VAULT;1.1;AES256⏎‹digits 80›⏎‹digits 80›
kind: SealedSecret⏎spec:⏎  encryptedData:⏎    password: Ag‹b64 300›
-----BEGIN AGE ENCRYPTED FILE-----⏎‹pem 4 nl›⏎-----END AGE ENCRYPTED FILE-----
-----BEGIN PGP MESSAGE-----⏎⏎hQIMA‹pem 5 nl›⏎-----END PGP MESSAGE-----
‹KEYVAR›="encrypted:B‹b64 90›"
secure: "‹b64 256›" # encrypted by the CI server for ‹org›/‹app›
{"CiphertextBlob": "AQICAH‹b64 150›", "KeyId": "arn:aws:kms:‹region›:‹digits 12›:key/‹uuid›"}
    enc: ‹b64 48›⏎    recipient: age1‹lower 58›
  secureconfig:‹app›:dbPassword:⏎    secure: v1:‹b64 12›:‹b64 32›
vault:v1:‹b64 60›
""",
    "tables": r"""
| ‹app› | ‹n 1 99› | ‹ver› | ok |⏎| ‹app› | ‹n 1 99› | ‹ver› | failed |
 id  | name  | created_at⏎-----+-------+-----------⏎ ‹n 1 99› | ‹first› | ‹at›
KEY_NAME       CREATED     LAST USED⏎‹app›-ci       ‹n 1 99›d ago    ‹n 1 9›h ago
 ‹n 1 99› | ‹mail› | ‹uuid› | t
id,email,plan,tokens_used⏎‹n 1 99›,‹mail›,pro,‹n 100 9999›
Column        | Type | Nullable⏎--------------+------+---------⏎ password_hash | text | not null  -- ‹app›
model         input   output   cost⏎‹app›-large   ‹n 100 9999›    ‹n 100 9999›     $0.‹n 10 99›
‹KEYVAR›   ***   Updated ‹at›
│ ‹KEYVAR› │ Encrypted │ Production, Preview │ ‹n 1 99›d ago │
Provider: ‹svc›⏎Auth: API key (set)⏎Requests: ‹n 10 999›
""",
    "commands": r"""
ssh -i ~/.ssh/‹org›_ed25519 ‹user›@‹ip› uptime
openssl rand -hex ‹n 16 64› > ~/.‹app›_secret
docker compose exec ‹app› printenv | grep -c PASSWORD
grep -rn "password" ‹dir›/ --include='*.py' | wc -l⏎‹n 1 99›
kubectl get secret ‹app›-db -n ‹env› -o yaml | wc -c
ssh-keygen -t ed25519 -C "‹mail›" -f ~/.ssh/‹app›
gh auth status⏎  ✓ Logged in to github.com account ‹first› (keyring)
aws sts get-caller-identity --profile ‹org›-‹env›
python -m ‹app› --config config/‹env›.yml --max-tokens ‹n 100 9999›
mysql -h ‹host› -u ‹user› -p ‹app›
psql -h ‹host› -U ‹user› -d ‹app› -c 'select count(*) from tokens'
cp .env.example .env && sed -i 's/^PORT=.*/PORT=‹n 3000 9999›/' .env
read -rs -p "Password for ‹app›: " PASS
mkdir -p -m 700 /code/‹app›/keys
scp -P ‹n 1000 9999› -p ‹file› ‹user›@‹ip›:/srv/‹app›/
""",
    "addresses": r"""
git@github.com:‹org›/‹app›.git
https://‹user›@‹host›/‹org›/‹app›.git
redis://‹host›:6379/‹n 0 9›
postgresql://‹host›:5432/‹app›?sslmode=require
sqlite:///./‹app›-‹ver›.db
amqp://‹host›:5672
mailto:‹mail›?subject=‹app›
jdbc:postgresql://‹host›:5432/‹app›
s3://‹org›-‹env›/‹app›/‹n 2020 2026›/‹uuid›.parquet
file:///code/‹app›/‹path›#L‹n 1 300›
http://localhost:‹n 3000 9999›/reset-password
https://‹host›/search?q=forgot+password&page=‹n 1 99›
https://‹host›/callback?state=ok&tab=tokens&page=‹n 1 99›
Server=‹host›;Database=‹app›;Integrated Security=true;
""",
    "numbers": r"""
[‹n 1 99›, ‹n 1 99›, ‹n 100 999›, ‹n 1000 9999›, 0.‹digits 6›]
lr=‹n 1 9›e-5 loss=0.‹digits 4› step=‹n 100 9999› tokens/s=‹n 100 9999›
0000‹hex 4›: ‹hex 4› ‹hex 4› ‹hex 4› ‹hex 4› ‹hex 4› ‹hex 4› ‹hex 4› ‹hex 4›
0x‹hex 16› in _Py_‹title app› () at ‹file›:‹n 1 300›
2.‹n 1 9›.‹n 1 9›+build.‹hex 7›
mac ‹hex 2›:‹hex 2›:‹hex 2›:‹hex 2›:‹hex 2›:‹hex 2› inet6 fe80::‹hex 4›:‹hex 4›
lat=‹n 1 80›.‹digits 6› lon=‹n 1 99›.‹digits 6› key=‹app›
p50=‹n 1 99›ms p95=‹n 100 300›ms p99=‹n 300 900›ms (‹n 1000 9999› requests)
#‹hex 6› #‹hex 6› #‹hex 6›
GPU ‹n 0 7›: NVIDIA A100 (UUID: GPU-‹uuid›)
timestamp=‹digits 13› offset=‹n 100 99999› partition=‹n 0 31› key=order-‹n 1 9999›
""",
}

DATA: tuple[Kind, ...] = kinds("data", COUNT, DATA_BLOCKS)
