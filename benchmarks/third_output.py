"""What programs print and what must stay: tests, logs, listings, lock files, answers of services."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["OUTPUT"]

EACH = 40

OUTPUT = read_kinds(
    r"""
== out-tests 60
tests/test_«snake».py::test_«snake» PASSED                         [ «n:10-99»%]
FAILED tests/test_«snake».py::test_«snake» - AssertionError: assert «n» == «n»
«n» passed, «n:1-9» skipped in «n:1-90».«num:2»s
 ✓ «dir»/«kebab».test.ts («n:1-40» tests) «ms»
--- FAIL: Test«Class» (0.«num:2»s)↵    «noun»_test.go:«n»: got «n», want «n»
ok  ⇥github.com/«svc»/«noun»/internal/«noun»⇥0.«num:3»s
test «noun»::tests::«snake» ... ok
E       assert 'token' in {'«noun»': «n»}
  ● «Class» › rejects a wrong password
test_password_too_short (auth.tests.«Class»Test) ... ok
Tests:       «n:1-9» failed, «n» passed, «n» total
ok «n:1-60» - token is refreshed when it expires
    expect(received).toBe(expected)↵↵    Expected: "«adj»"↵    Received: "«adj»"
PASS src/auth/password.test.ts
coverage: «n:10-99».«num:1»% of statements
FAILED tests/auth/test_tokens.py::test_expired_token_is_refused - KeyError: 'token'
== out-lint-and-build 50
«path»:«n»:«n:1-80»: error: Argument 1 to "«snake»" has incompatible type "str"; expected "int"  [arg-type]
«path»(«n»,«n:1-80»): error TS2339: Property '«noun»' does not exist on type '«Class»'.
error[E0382]: borrow of moved value: `«noun»`↵  --> «path»:«n»:«n:1-80»
warning: unused variable: `token`
«path»:«n»:5: S105 Possible hardcoded password assigned to: "token"
dist/assets/index-«b64u:8».js   «n».«num:2» kB │ gzip: «n».«num:2» kB
   Compiling «pkg» v«ver»
SyntaxError: Unexpected token '<', "<!DOCTYPE "... is not valid JSON
SyntaxError: Unexpected token } in JSON at position «n»
✓ built in «ms»
ERROR in «path»: Module not found: Error: Can't resolve './«kebab»'
[«n:1-99»/«n:100-300»] Building CXX object CMakeFiles/«svc».dir/«noun».cpp.o
chunk-«up:8».js  | «noun» | «n».«num:2» kB
error: invalid token at line «n», column «n:1-80»
Found «n:1-30» errors in «n:1-9» files (checked «n» source files)
== out-git 60
 «path» | «n» «+++--|++++|---»
diff --git a/«path» b/«path»↵index «hex:7»..«hex:7» 100644↵--- a/«path»↵+++ b/«path»
@@ -«n»,«n:1-30» +«n»,«n:1-30» @@ def «snake»(«noun»):
[«branch» «hex:7»] «verb» the «noun»
   «hex:7»..«hex:7»  «branch» -> «branch»
On branch «branch»↵Changes not staged for commit:↵⇥modified:   «path»
«hex:40» refs/heads/«branch»
commit «hex:40» (HEAD -> «branch», origin/«branch»)
From github.com:«svc»/«noun»↵ * branch            «branch»     -> FETCH_HEAD
100644 blob «hex:40»⇥«path»
gpg: Signature made Tue «n:10-28» «month» 2026↵gpg:                using EDDSA key «HEX:40»
remote: Resolving deltas: 100% («n»/«n»), completed with «n:1-40» local objects.
origin⇥git@github.com:«svc»/«noun».git (fetch)
«hex:8» («first» «last» «date» «time» +0200 «n») def «snake»(token):
 create mode 100644 «path»
oid sha256:«hex:64»↵size «n»
== out-diff 50
-    return «snake»(«noun»)↵+    return «snake»(«noun», limit=«n»)
+  const «noun» = await «camel»(«noun»Id);
-password = request.form["password"]↵+password = form.password.data
+    token: string;
 import { «Class» } from './«kebab»'↵-import { «camel» } from './«kebab»'
-"version": "«ver»",↵+"version": "«ver»",
+      DB_PASSWORD: ${{ secrets.DB_PASSWORD }}
+def test_a_wrong_password_is_refused() -> None:
-  "integrity": "sha512-«b64:86»=="↵+  "integrity": "sha512-«b64:86»=="
+ * Returns the token's owner, or null.
- # key: value pairs↵+ # pairs of key and value
== out-stack-traces 50
Traceback (most recent call last):↵  File "/code/«svc»/«noun».py", line «n», in «snake»↵    «noun» = self.«snake»(token)↵KeyError: '«noun»'
    at «Class».«camel» (/code/«svc»/dist/«noun».js:«n»:«n:1-80»)
java.lang.NullPointerException: Cannot invoke "«Class».getPassword()" because "user" is null↵⇥at com.«svc».«noun».«Class».«camel»(«Class».java:«n»)
goroutine «n» [running]:↵main.«camel»(0xc000«hex:6», 0x«hex:2»)↵⇥/code/«svc»/main.go:«n» +0x«hex:3»
thread 'main' panicked at src/«noun».rs:«n»:«n:1-60»:
TypeError: Cannot read properties of undefined (reading 'token')
jwt.exceptions.ExpiredSignatureError: Signature has expired
psycopg2.OperationalError: FATAL:  password authentication failed for user "«user»"
ERROR 1045 (28000): Access denied for user '«user»'@'«ip»' (using password: YES)
botocore.exceptions.ClientError: An error occurred (InvalidAccessKeyId) when calling the «Class» operation
#«n:0-30» 0x«hex:16» in «snake» («noun»=0x«hex:12») at «path»:«n»
Error: Missing required environment variable «ENV»_API_KEY
fatal: Authentication failed for 'https://github.com/«svc»/«noun».git/'
requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://«site»/«noun»s/«n»
== out-logs 60
«ts» «level» [«noun»-«n:1-16»] com.«svc».«Class» - «verb» «noun» took «ms»
«ip» - - [«n:10-28»/«month»/2026:«time» +0000] "GET /«noun»s/«n» HTTP/1.1" 200 «n» "-" "Mozilla/5.0 (X11; Linux x86_64)"
{"level":"info","time":"«ts»","msg":"«verb» «noun»","request_id":"«uuid»","duration_ms":«n»}
«month» «n:10-28» «time» «svc» sshd[«n»]: Failed password for «user» from «ip» port «n:30000-60000» ssh2
«month» «n:10-28» «time» «svc» sshd[«n»]: Accepted publickey for «user» from «ip» port «n:30000-60000» ssh2: ED25519 SHA256:«b64:43»
level=warn ts=«ts» caller=«noun».go:«n» msg="token expired" user_id=«n»
[«ts»] «level»: password reset mail sent to user «n»
«ts» INFO auth: token refreshed for client «uuid», expires in 3600
time="«ts»" level=info msg="«verb» «noun»" trace_id=«hex:32» span_id=«hex:16»
I«num:4» «time».«num:6»   «n» «noun».go:«n»] «verb» «noun»: key=«noun»/«kebab»
«ts» [info] prompt tokens: «n», completion tokens: «n», cached: «n»
(node:«n») Warning: Setting NODE_TLS_REJECT_UNAUTHORIZED to 0 makes TLS connections insecure
[vite] hmr update /«path» (x«n:1-9»)
POST /login 401 in «ms» (wrong password)
== out-packages 50
added «n» packages, and audited «n» packages in «n:1-60»s
+ «pkg»@«ver»
├── «pkg»@«ver»↵└─┬ «pkg»@«ver»
Successfully installed «pkg»-«ver» «pkg»-«ver»
«pkg»==«ver» \↵    --hash=sha256:«hex:64» \↵    --hash=sha256:«hex:64»
«pkg» «ver» => «ver»
npm warn deprecated «pkg»@«ver»: this version is no longer supported
Downloading «noun»-«ver»-cp312-cp312-manylinux_2_17_x86_64.whl («n» kB)
Get:«n:1-40» http://deb.debian.org/debian bookworm/main amd64 passwd amd64 1:4.13+dfsg1-1 [«n» kB]
ii  libsecret-1-0:amd64   0.20.5-3   amd64   Secret store
==> Pouring «noun»--«ver».arm64_sonoma.bottle.tar.gz
jsonwebtoken 9.0.2  (latest 9.0.3)
== out-lock-files 60
      "resolved": "https://registry.npmjs.org/«noun»/-/«noun»-«ver».tgz",↵      "integrity": "sha512-«b64:86»=="
  integrity sha512-«b64:86»==
    resolution: {integrity: sha512-«b64:86»==}
  checksum: 10c0/«hex:128»
checksum = "«hex:64»"
    {file = "«noun»-«ver»-py3-none-any.whl", hash = "sha256:«hex:64»"},
{ url = "https://files.«svc».org/packages/«hex:2»/«hex:2»/«hex:60»/«noun»-«ver».tar.gz", hash = "sha256:«hex:64»", size = «n» },
github.com/«svc»/«noun» v«ver» h1:«b64:43»=
github.com/«svc»/«noun» v«ver»/go.mod h1:«b64:43»=
source = "registry+https://github.com/rust-lang/crates.io-index"
"content-hash": "«hex:32»",
    "js-tokens@4.0.0": "sha512-«b64:86»==",
name = "«noun»"↵version = "«ver»"
"narHash": "sha256-«b64:43»=",
"reference": "«hex:40»",
== out-files
-rw-r--r-- 1 «user» «user»  «n» «month» «n:10-28» «n:10-23»:«n:10-59» «snake».«ext»
drwxr-xr-x  «n:2-30» «user» staff   «n» «month» «n:10-28»  2026 «noun»
«path»
      «n» «path»
«path»:«n»:    password: str
./«dir»/password_reset.«ext»
-rw------- 1 «user» «user» 411 «month» «n:10-28» «n:10-23»:«n:10-59» id_ed25519
«n»K⇥«dir»/«noun»
├── «snake».«ext»↵├── token_store.«ext»↵└── «noun»/
src/auth/«token|password|secret|credential»_«noun».«ext»:«n»:import «noun»
No files found
Found «n» files↵«path»↵«path»
== out-containers 50
«hex:12»   «svc»/«noun»:«ver»   "docker-entrypoint.s…"   «n:2-9» hours ago   Up «n:2-9» hours   0.0.0.0:«port»->«port»/tcp   «svc»-«noun»-1
«svc»-«hex:9»-«low:5»   1/1     Running   «n:0-9»          «n:1-90»d
sha256:«hex:64»
«svc»/«noun»@sha256:«hex:64»
NAME                  TYPE                DATA   AGE↵«svc»-db               Opaque              «n:1-5»      «n:1-90»d
 => [«n:2-9»/«n:10-12»] COPY . .                                   «n:0-9».«num:1»s
«hex:12»: Pull complete
default-token-«low:5»   kubernetes.io/service-account-token   3   «n»d
Events:↵  Type     Reason     Age   From     Message↵  Warning  BackOff    «n:2-50»s   kubelet  Back-off restarting failed container «svc»
Name:         «svc»-db↵Type:  Opaque↵↵Data↵====↵password:  «n:10-40» bytes↵username:  «n:3-12» bytes
"Id": "sha256:«hex:64»", "RepoTags": ["«svc»/«noun»:«ver»"]
configmap/«svc»-config created↵secret/«svc»-tls unchanged
«svc»-pool-«low:5»   Ready    <none>   «n»d   v1.«n:28-33».«n:0-9»
== out-terraform
  + resource "aws_«noun»" "«noun»" {↵      + arn  = (known after apply)↵      + id   = (known after apply)↵    }
      ~ password             = (sensitive value)
Plan: «n:1-30» to add, «n:0-9» to change, «n:0-9» to destroy.
aws_iam_role.«noun»: Refreshing state... [id=«svc»-«noun»-role]
      + secret_arn = "arn:aws:secretsmanager:«cloud»:«num:12»:secret:«svc»-«an:6»"
      - master_password = (sensitive value) -> null
aws_instance.«noun»: Creation complete after «n:10-90»s [id=i-0«hex:16»]
db_password = <sensitive>
      + kms_key_id = "arn:aws:kms:«cloud»:«num:12»:key/«uuid»"
subnet-0«hex:16»  vpc-0«hex:16»  sg-0«hex:16»
      ~ etag = "«hex:32»" -> "«hex:32»"
== out-api-json 60
{"id":"«uuid»","name":"«adj» «noun»","created_at":"«ts»","tags":["«noun»","«adj»"]}
{"data":[{"id":«n»,"«noun»":"«adj»"}],"next_page_token":null,"total":«n»}
{"error":{"code":"invalid_token","message":"The token has expired"}}
{"usage":{"input_tokens":«n»,"output_tokens":«n»,"cache_read_input_tokens":«n»}}
"node_id": "MDEwOlJlcG9zaXRvcnk«num:8»=", "full_name": "«svc»/«noun»"
{"customer":"cus_«an:14»","invoice":"in_1«an:23»","status":"paid"}
{"object":"chat.completion","id":"chatcmpl-«an:29»","model":"«model»","system_fingerprint":"fp_«hex:10»"}
{"keys":[{"kty":"RSA","use":"sig","kid":"«hex:16»","n":"«b64u:342»","e":"AQAB"}]}
{"password_reset_required":true,"password_changed_at":"«ts»","mfa":false}
"clientMutationId": null, "cursor": "Y3Vyc29yOnYyOpHO«an:8»"
{"hasPassword": true, "tokenCount": «n», "secretsEnabled": false}
"sha": "«hex:40»", "url": "https://api.github.com/repos/«svc»/«noun»/git/trees/«hex:40»"
{"ETag":"\"«hex:32»\"","VersionId":"«an:32»","Key":"«noun»/«kebab».json"}
{"type":"object","properties":{"password":{"type":"string","minLength":12},"token":{"type":"string"}}}
{"secrets":[{"name":"«ENV»_TOKEN","created_at":"«ts»"}],"total_count":1}
== out-transcript-records 60
{"type":"assistant","uuid":"«uuid»","parentUuid":"«uuid»","sessionId":"«uuid»","requestId":"req_011C«an:20»","timestamp":"«ts»"}
{"type":"tool_use","id":"toolu_01«an:22»","name":"«tool»","input":{"file_path":"/code/«svc»/«path»"}}
{"tool_use_id":"toolu_01«an:22»","type":"tool_result","content":"The file /code/«svc»/«path» has been updated."}
{"type":"thinking","thinking":"The «noun» is «adj», so «verb» it first.","signature":"Eq«b64:200»=="}
{"id":"msg_01«an:22»","model":"«model»","role":"assistant","usage":{"input_tokens":«n»,"output_tokens":«n»}}
{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls «dir»\"]}","call_id":"call_«an:24»"}
{"type":"reasoning","summary":[],"encrypted_content":"gAAAAAB«b64u:200»=="}
{"type":"file-history-snapshot","messageId":"«uuid»","snapshot":{"trackedFileBackups":{"«path»":{"backupFileName":"«hex:16»@v«n:1-9»"}}}}
{"type":"summary","summary":"«Name» «noun» «verb»","leafUuid":"«uuid»"}
{"isSidechain":false,"userType":"external","cwd":"/code/«svc»","version":"2.1.«n:1-60»","gitBranch":"«branch»","slug":"«adj»-«noun»-«noun»"}
{"type":"progress","data":{"type":"bash_progress","output":"ok  \tgithub.com/«svc»/«noun»\t0.«num:3»s","elapsedTimeSeconds":«n»}}
== out-services
Active: active (running) since Tue «date» «time» UTC; «n:1-9» days ago
   CGroup: /system.slice/«svc».service
tcp   LISTEN 0  4096  0.0.0.0:«port»  0.0.0.0:*  users:(("«svc»",pid=«n»,fd=«n:3-40»))
HTTP/2 200↵content-type: application/json↵etag: W/"«hex:2»-«b64:27»"↵cf-ray: «hex:16»-FRA↵x-request-id: «uuid»
«user»     «n:1000-9000»  0.«num:1»  1.«num:1» «n» «n» ?  Ssl  «month»«n:10-28»   «n:0-9»:«n:10-59» /usr/bin/«svc» --config /etc/«svc».toml
< HTTP/1.1 401 Unauthorized↵< WWW-Authenticate: Bearer realm="«svc»", error="invalid_token"
PING «host» («ip»): 56 data bytes↵64 bytes from «ip»: icmp_seq=0 ttl=64 time=«n:1-90».«num:3» ms
username: «user»↵authenticated: yes (token from keychain)
  ✓ Logged in to github.com account «user» (keyring)↵  - Token: gho_************************************
Filesystem      Size  Used Avail Use% Mounted on↵/dev/sda1       «n»G  «n»G  «n»G  «n:10-99»% /
x-ratelimit-remaining-tokens: «n»↵x-ratelimit-reset-tokens: «ms»
== out-database
 id |  «noun»  | «noun»_id↵----+--------+------------↵  «n:1-9» | «adj» |        «n:10-99»↵(1 row)
 Column        | Type                   | Nullable↵---------------+------------------------+---------↵ password_hash | character varying(255) | not null
Seq Scan on «noun»s  (cost=0.00..«n».«num:2» rows=«n» width=«n») (actual time=0.0«num:2»..«n».«num:3» rows=«n» loops=1)
Query OK, «n» rows affected (0.«num:2» sec)
 token_count | «n»↵ key_type    | primary
INFO  [alembic.runtime.migration] Running upgrade «hex:12» -> «hex:12», add password reset table
CREATE TABLE
{ "_id" : ObjectId("«hex:24»"), "«noun»" : "«adj»" }
Migrating: 2026_0«n:1-9»_«n:10-28»_«num:6»_create_password_resets_table
ERROR:  relation "«noun»_tokens" does not exist at character «n»
== out-web-pages
# «Name» «noun» — how to «verb» a «noun»↵↵Source: https://«site»/docs/«kebab»
[How do I rotate an API key?](https://«site»/docs/rotate-api-key)
https://«site»/«noun»s/«uuid»?page=«n»&sort=«noun»
https://www.youtube.com/watch?v=«b64u:11»
https://github.com/«svc»/«noun»/blob/«hex:40»/«path»#L«n»
https://«svc».atlassian.net/browse/«up:3»-«n»
https://«site»/login?next=/«noun»s&lang=de
Tokens | Docs | Pricing | Sign in↵Forgot your password? Create an account
https://cdn.«svc».com/assets/«noun»-«hex:20».css
""",
    EACH,
)
