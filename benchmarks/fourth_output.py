"""What tools print: listings, tests, builds, logs and diffs without a secret."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["OUTPUT"]

COUNT = 40

OUTPUT_BLOCKS: dict[str, str] = {
    "git": r"""
 M ‹path›⏎?? ‹dir›/‹app›/tokens.py
[‹branch› ‹hex 7›] ‹verb› token check⏎ ‹n 1 9› files changed, ‹n 1 99› insertions(+)
   ‹hex 7›..‹hex 7›  ‹branch› -> ‹branch›
index ‹hex 7›..‹hex 7› 100644⏎--- a/‹path›⏎+++ b/‹path›
‹hex 40›⇥refs/heads/‹branch›
100644 blob ‹hex 40›⇥‹path›
^‹hex 8› (‹title first› ‹n 2022 2026›-0‹n 1 9›-1‹n 0 9› ‹n 1 300›) def get_token(self):
HEAD is now at ‹hex 7› ‹verb› ‹app›
Submodule path '‹dir›/‹app›': checked out '‹hex 40›'
origin⇥git@github.com:‹org›/‹app›.git (fetch)
warning: in the working copy of '‹path›', LF will be replaced by CRLF
stash@{‹n 0 9›}: WIP on ‹branch›: ‹hex 7› ‹verb› secrets loader
""",
    "listing": r"""
-rw------- 1 ‹first› staff  ‹n 100 9999› ‹month› ‹n 1 28› 10:‹n 10 59› id_ed25519
-rw-r--r-- 1 ‹first› staff ‹n 100 99999› ‹month› ‹n 1 28› 10:‹n 10 59› ‹file›
drwxr-xr-x  ‹n 2 30› ‹first›  staff   ‹n 64 999› ‹month› ‹n 1 28› ‹dir›
./‹dir›/‹app›/password_reset.py⏎./‹path›
‹path›:‹n 1 900›:def refresh_token(self) -> str:
├── ‹dir›⏎│   ├── ‹app›⏎│   │   └── ‹file›⏎│   └── secrets.yaml.example
‹n 1 999›K⇥./‹dir›/‹app›
/code/‹app›/node_modules/‹lib›/dist/index.js
Found ‹n 2 99› files⏎/code/‹app›/‹path›⏎/code/‹app›/.env.example
/dev/disk‹n 1 9›s1   ‹n 100 900›Gi  ‹n 10 99›Gi  ‹n 10 99›%    /
  ‹n 100 9999› ‹path›⏎ ‹n 10000 99999› total
""",
    "tests": r"""
‹path›::test_password_is_hashed PASSED [ ‹n 1 99›%]
FAILED ‹path›::test_token_expires - AssertionError: assert ‹n 200 299› == ‹n 400 499›
=========== ‹n 1 99› failed, ‹n 100 999› passed, ‹n 1 9› skipped in ‹n 1 99›.‹n 10 99›s ===========
 ✓ ‹app› › rejects a wrong password (‹n 1 900› ms)
 ✕ ‹app› › refreshes the token when it expires (‹n 1 900› ms)
E       assert 'token' in {'user': ‹n 1 99›}
--- FAIL: Test‹title app›Token (0.‹n 10 99›s)⏎    ‹file›:‹n 1 300›: got ‹n 1 99›, want ‹n 1 99›
test ‹app›::tests::parses_key ... ok
Tests:       ‹n 1 9› failed, ‹n 10 999› passed, ‹n 10 999› total
‹app›/auth/password.py      ‹n 10 300›      ‹n 1 9›    ‹n 70 99›%   ‹n 1 99›-‹n 100 200›
Expected: "Invalid password"⏎Received: "Unknown user" (‹path›:‹n 1 300›)
seed: ‹digits 10›  (‹n 10 900› tests in random order)
""",
    "builds": r"""
added ‹n 10 999› packages, and audited ‹n 100 1999› packages in ‹n 1 99›s
 => [‹app› ‹n 1 9›/9] COPY ‹dir› ./‹dir›   0.‹n 1 9›s
 => exporting manifest sha256:‹hex 64›
dist/assets/index-‹b64u 8›.js   ‹n 100 900›.‹n 10 99› kB │ gzip: ‹n 10 99›.‹n 10 99› kB
   Compiling ‹lib› v‹ver›
‹path›(‹n 1 300›,‹n 1 99›): error TS2339: Property 'token' does not exist on type 'Session'.
‹path›:‹n 1 300›: error: Argument "password" has incompatible type "str | None"; expected "str"  [arg-type]
Successfully installed ‹lib›-‹ver› ‹lib›-‹ver›
> Task :‹app›:compileKotlin UP-TO-DATE ‹n 1 99›ms
ld: warning: object file (‹app›.o) was built for newer version (‹ver›)
npm warn deprecated ‹lib›@‹ver›: use ‹lib› instead
S105 Possible hardcoded password assigned to: "password"⏎  --> ‹path›:‹n 1 300›:‹n 1 40›
""",
    "containers": r"""
‹hex 12›   ‹org›/‹app›:‹ver›   "docker-entrypoint.s…"   ‹n 2 9› hours ago   Up ‹n 2 9› hours   0.0.0.0:‹n 1000 9999›->5432/tcp   ‹app›_db_1
‹app›-‹hex 10›-‹lower 5›   1/1     Running   ‹n 0 9›          ‹n 1 99›d
Digest: sha256:‹hex 64›
‹app›-db-credentials   Opaque   ‹n 1 9›   ‹n 1 99›d
secret/‹app›-tls created
Name:         ‹app›-token-‹lower 5›⏎Type:  kubernetes.io/service-account-token
‹org›/‹app›   ‹ver›   ‹hex 12›   ‹n 2 9› weeks ago   ‹n 100 900›MB
Error from server (NotFound): secrets "‹app›-db" not found
containerd://‹hex 64›
Warning  Failed  ‹n 1 59›m  kubelet  Error: secret "‹svc›-api-key" not found
Image:          ‹org›/‹app›@sha256:‹hex 64›
latest: digest: sha256:‹hex 64› size: ‹n 1000 9999›
""",
    "terraform": r"""
aws_db_instance.‹app›: Refreshing state... [id=db-‹upper 26›]
  # aws_secretsmanager_secret.‹app› will be created⏎  + resource "aws_secretsmanager_secret" "‹app›" {⏎      + arn  = (known after apply)⏎      + name = "‹env›/‹app›"
Plan: ‹n 1 9› to add, ‹n 1 9› to change, ‹n 0 9› to destroy.
      ~ tags = { "Owner" = "‹first›" } -> { "Owner" = "‹first›" }
"arn:aws:iam::‹digits 12›:role/‹app›-‹env›"
arn:aws:secretsmanager:‹region›:‹digits 12›:secret:‹env›/‹app›-‹alnum 6›
aws_instance.‹app›: Creation complete after ‹n 10 99›s [id=i-0‹hex 16›]
subnet-0‹hex 16›  vpc-0‹hex 16›  ‹ip›/24  ‹region›a
kms_key_id = "arn:aws:kms:‹region›:‹digits 12›:key/‹uuid›"
‹app›_password = <sensitive>
{"KeyId": "‹uuid›", "KeyState": "Enabled", "KeyUsage": "ENCRYPT_DECRYPT", "Region": "‹region›"}
etag = "‹hex 32›"
""",
    "logs": r"""
‹at› INFO  [‹app›] user ‹n 1 9999› logged in from ‹ip›
‹at› WARN  token for user ‹n 1 9999› expired ‹n 1 99› s ago, refreshing
‹at› ERROR password authentication failed for user "‹user›"
‹ip› - - [‹n 1 28›/‹month›/2026:10:‹n 10 59›:11 +0000] "POST /api/v1/password/reset HTTP/1.1" 204 0
level=info ts=‹at› caller=‹app›.go:‹n 1 300› msg="secret reloaded" version=‹n 1 99›
‹at› DEBUG trace_id=‹hex 32› span_id=‹hex 16› duration_ms=‹n 1 900›
{"level":"info","time":"‹at›","requestId":"‹uuid›","msg":"api key accepted","status":200}
[‹n 1 28›/‹month›] ‹app›: connection to ‹ip›:5432 closed, pool ‹n 1 40›/40
sshd[‹n 100 9999›]: Failed password for invalid user ‹user› from ‹ip› port ‹n 1000 9999› ssh2
sshd[‹n 100 9999›]: Accepted publickey for ‹user› from ‹ip› port ‹n 1000 9999› ssh2: ED25519 SHA256:‹b64u 43›
celery.worker: Task ‹app›.tasks.send_password_mail[‹uuid›] succeeded in 0.‹n 100 999›s
traceparent: 00-‹hex 32›-‹hex 16›-01
""",
    "diffs": r"""
-    password = os.environ["‹PWVAR›"]⏎+    password = settings.‹app›_password
+    token = self.‹app›.find_token(user_id)⏎+    if token is None:
@@ -‹n 1 300›,‹n 3 20› +‹n 1 300›,‹n 3 20› @@ class ‹title app›TokenStore:
-  ‹lib›: ^‹ver›⏎+  ‹lib›: ^‹ver›
-      image: ‹org›/‹app›:‹ver›⏎+      image: ‹org›/‹app›:‹ver›
+  const token = await getToken({ audience: '‹app›' });
-‹KEYVAR›=⏎+‹KEYVAR›=<generate with openssl rand -hex ‹n 16 64›>
+      "password": { "type": "string", "minLength": ‹n 8 20› },
-    "version": "‹ver›",⏎+    "version": "‹ver›",
+          key: ${{ runner.os }}-‹app›-${{ hashFiles('**/lock.json') }}
 def reset_password(user: User, token: str) -> None:⏎-    send(user, ‹n 1 9›)⏎+    send(user, ‹n 1 9›, token=token)
""",
    "errors": r"""
Traceback (most recent call last):⏎  File "/app/‹path›", line ‹n 1 300›, in get_token⏎    return self.tokens[key]⏎KeyError: '‹svc›'
pydantic_core.ValidationError: 1 validation error for Settings⏎‹keyname›⏎  Field required [type=missing, input_value={}, input_type=dict]
TypeError: Cannot read properties of undefined (reading 'token')⏎    at ‹path›:‹n 1 300›:‹n 1 40›
fatal: could not read Password for 'https://‹user›@‹host›': terminal prompts disabled
ERROR 1045 (28000): Access denied for user '‹user›'@'‹ip›' (using password: YES)
psql: error: connection to server at "‹host›" (‹ip›), port 5432 failed: FATAL:  password authentication failed for user "‹user›"
Error: ‹KEYVAR› environment variable is not set
SyntaxError: Unexpected token '<', "<!DOCTYPE "... is not valid JSON (‹path›:‹n 1 300›)
{"error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_‹alnum 24›"}
java.lang.IllegalStateException: No secret key configured for ‹app›⏎⇥at com.‹org›.Auth.load(Auth.java:‹n 1 300›)
thread 'main' panicked at ‹path›:‹n 1 300›:‹n 1 40›: missing token
Permission denied (publickey,password). [‹user›@‹ip›]
""",
    "http": r"""
> ‹method› /v1/‹app› HTTP/2⏎> Host: ‹host›⏎> user-agent: curl/8.5.0⏎> accept: */*
< HTTP/2 ‹n 200 504›⏎< content-type: application/json⏎< etag: W/"‹hex 8›-‹b64u 27›"
x-request-id: ‹uuid›
WWW-Authenticate: Bearer realm="‹app›", error="invalid_token"
cf-ray: ‹hex 16›-FRA
content-security-policy: default-src 'self'; script-src 'sha256-‹b64 32›'
access-control-allow-headers: authorization, x-api-key, x-‹svc›-token
x-ratelimit-remaining-tokens: ‹n 100 99999›
set-cookie: theme=dark; Path=/; Max-Age=‹n 1000 99999›
{"status":"ok","uptime":‹n 1 99999›,"version":"‹ver›"}
https://‹host›/docs/authentication#api-keys-‹n 1 9›
https://github.com/‹org›/‹app›/blob/‹hex 40›/‹path›#L‹n 1 300›
last-modified: ‹day›, ‹n 10 28› ‹month› 2026 10:‹n 10 59›:00 GMT
""",
}

OUTPUT: tuple[Kind, ...] = kinds("out", COUNT, OUTPUT_BLOCKS)
