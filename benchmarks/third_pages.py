"""More that must stay: help texts, prompts, patterns, settings, dumps, release notes and letters."""

from __future__ import annotations

from third_draw import read_kinds

__all__ = ["PAGES"]

EACH = 40

PAGES = read_kinds(
    r"""
== page-command-help
  -p, --password <password>   password of the user (will be asked for when missing)
  --token TOKEN         API token, default: $«ENV»_TOKEN
  --«kebab» <n>          how many «noun»s to «verb» (default: «n»)
usage: «svc» [-h] [--«noun» «ENV»] [--password-file FILE] {«verb»,«verb»} ...
Usage: «svc» login [OPTIONS]↵↵Options:↵  --api-key TEXT  The key of your account.↵  --help          Show this message and exit.
      --kubeconfig string   Path to the kubeconfig file
  auth        Manage tokens and login state
  -k, --key string     «verb» by this key (default "id")
Flags:↵      --secret-name string   name of the secret to read
    «svc» «verb» --«noun»=<«noun»>   «verb» one «noun»
  --pass-through        hand unknown options to «svc»
== page-prompts
Password:
Enter passphrase for key '/home/«user»/.ssh/id_ed25519':
[sudo] password for «user»:
Username for 'https://github.com': «user»
? Select a «noun»: › «adj»
Enter password again:
«user»@«host»'s password:
? What is the name of the secret? «svc»-«noun»
Token (input hidden):
Enter MFA code:
Do you want to «verb» the «noun»? [y/N]
New password: ↵Retype new password: ↵passwd: password updated successfully
Permission denied, please try again.↵«user»@«host»'s password:
== page-secret-patterns
ghp_[A-Za-z0-9]{36}
re.compile(r"(?i)(password|passwd|pwd)\s*[:=]\s*\S+")
const TOKEN_RE = /^sk-[a-zA-Z0-9]{20,}$/;
AKIA[0-9A-Z]{16}
rules:↵  - id: generic-api-key↵    regex: '[a-z0-9]{32,}'
if line.startswith("-----BEGIN"):
"pattern": "xox[baprs]-[0-9a-zA-Z-]+"
grep -rE 'api[_-]?key\s*=' «dir»
/(?<=token=)[^&\s]+/g
SENSITIVE = {"password", "secret", "token", "authorization", "cookie"}
s/password=[^ ]*/password=***/g
gitleaks: no leaks found, «n» commits scanned
.gitignore: .env, *.pem, secrets.yml
== page-settings 50
"editor.tabSize": «n:2-8», "editor.formatOnSave": true,
server {↵    listen «port»;↵    server_name «site»;↵    ssl_certificate_key /etc/ssl/private/«svc».key;↵}
[tool.ruff]↵line-length = «n:80-120»
"scripts": { "«verb»": "vite build", "test": "vitest run" }
PasswordAuthentication no
PermitRootLogin prohibit-password
[Service]↵ExecStart=/usr/bin/«svc» --port «port»↵EnvironmentFile=/etc/«svc»/env
auth_method = "token"
log_level: «level»
requires_password = true
credential.helper=osxkeychain
IdentityFile ~/.ssh/«svc»_ed25519
user.signingkey=~/.ssh/id_ed25519.pub
"keybindings": [{"key": "ctrl+k", "command": "«noun».«verb»"}]
feature_flags:↵  password_login: false↵  token_refresh: true
NODE_ENV=production↵PORT=«port»↵LOG_LEVEL=debug↵TZ=Europe/Berlin
session_timeout_s = «n»
token_budget = «n:1000-90000»
PYTHONPATH=/code/«svc»/src:/code/«svc»/lib
EDITOR=vim PAGER=less LANG=en_US.UTF-8 SHELL=/bin/zsh
secret_backend: vault
PWD=/code/«svc»/«noun»
OLDPWD=/home/«user»/«noun»
SSH_AUTH_SOCK=/run/user/1000/keyring/ssh
== page-object-dumps
«Class»(id=«n», «noun»='«adj»', «noun»s=[«n», «n»])
{ «noun»: '«adj»', count: «n», token: undefined }
User(id=«n», email='«email»', password=SecretStr('**********'))
<«Class» object at 0x7f«hex:10»>
Config { host: "«host»", port: «port», token: None }
map[«noun»:«adj» «noun»:«n»]
&{«n» «noun» {0xc000«hex:6»} false}
[object Object]
Token(type=NAME, value='«noun»', line=«n», col=«n:1-80»)
#<Proc:0x0000«hex:12» «path»:«n»>
dict_keys(['user', 'password', 'host'])
{'password': None, 'token': '', 'debug': True}
Namespace(token=None, «noun»='«adj»', verbose=True)
== page-release-notes
## «ver» («date»)↵↵- «verb» «noun»s faster↵- Fixed: the password dialog closed too early
### Security↵- Tokens are no longer written to the log (#«n»)
* **«noun»:** «verb» «adj» «noun»s ([«hex:7»](https://github.com/«svc»/«noun»/commit/«hex:40»))
Upgraded «pkg» to «ver», see its notes on API keys.
- Deprecated `«camel»`, use `«camel»` instead.
BREAKING: `token` must now be passed by keyword.
Thanks to @«user» for the report about password hints!
Full changelog: https://github.com/«svc»/«noun»/compare/v«ver»...v«ver»
== page-letters
Hi «first»,↵↵the «noun» is «adj» again, could you have a look before Friday?↵↵Best, «first»
We have received a request to reset your password. If this was not you, ignore this mail.
Meeting notes «date»: «first» will «verb» the «noun»; «first» asks for a new token at the vendor.
Slack: @«first» I sent you the password via 1Password
The password comes in a separate mail.
Ask «first» for the key to the server room.
I put the credentials into the vault under «svc»/«noun».
Your password will expire in «n:2-30» days.
Please use your own account for this, the shared password is gone.
== page-words-that-mislead 60
Press any key to continue, or Esc to quit.
Key: Ctrl+Shift+«up:1»
The key of each «noun» is its «noun»_id, e.g. key=«noun»-«n».
primary key («noun»_id), foreign key to «noun»s
all checks pass: lint, types, tests
pass «noun» as the second argument of «camel»
The lexer emits a token: IDENT, then a token: NUMBER.
The secret of good «noun»s: keep them «adj».
next token: «noun» (p=0.«num:2»)
pass/fail: «n»/«n:0-9»
Token: «noun»
Authorization: required for all «noun»s
cookie consent banner is «adj» on mobile
credentials: include
auth: «Class»Auth
basic auth is enough for the «noun» page
bearer of bad news: the «noun» build is broken
key: «camel»
secret: false
password: string
token: Token
the pin is 4 digits, see the «noun» form
key = "«noun».«noun»"
sort key: created_at, partition key: «noun»_id
i18n key: «noun».«adj».title
access: public
signature: («noun»: string, limit: number) => Promise<void>
private key handling lives in «path»
user: «first», login: «date» «time», session: closed
== page-machine-learning
tokenizer.pad_token = tokenizer.eos_token
{"prompt_tokens": «n», "completion_tokens": «n», "total_tokens": «n»}
special_tokens_map.json: {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
q, k, v = self.key(x), self.query(x), self.value(x)
num_key_value_heads: «n:1-32»
<|im_start|>user↵«verb» the «noun»<|im_end|>
token_ids = [«n», «n», «n», «n»]
model.layers.«n:0-40».self_attn.k_proj.weight  torch.Size([«n», «n»])
throughput: «n».«num:1» tokens/s, time to first token: «ms»
past_key_values=None, max_new_tokens=«n»
== page-openapi-graphql
components:↵  securitySchemes:↵    bearerAuth:↵      type: http↵      scheme: bearer
  /«noun»s/{«noun»Id}:↵    get:↵      operationId: «camel»
mutation Login($email: String!, $password: String!) { login(email: $email, password: $password) { token } }
type «Class» { id: ID! «noun»: String token: String }
message LoginRequest { string user = 1; string password = 2; }
    apiKeyAuth:↵      type: apiKey↵      in: header↵      name: X-API-Key
rpc «Class» («Class»Request) returns («Class»Response);
        password:↵          type: string↵          format: password
query { «noun»s(first: «n», after: $cursor) { nodes { id name } } }
== page-coloured-output
␛[32m✓␛[39m «noun» «verb» ␛[90m(«ms»)␛[39m
␛[1m␛[31merror␛[0m: could not «verb» `«noun»`
\u001b[33mwarn\u001b[39m - «noun» is «adj»
␛[36m«path»␛[39m:␛[33m«n»␛[39m - ␛[31merror␛[39m TS«n:1000-9999»
\x1b[2m«time»\x1b[0m \x1b[32mINFO\x1b[0m «verb» «noun»
⠋ Installing «pkg»…
␛[K␛[2K␛[1G▸ «verb» «noun» «n:1-99»%
== page-licence-and-comment
# SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 «first» «last». All rights reserved.
'''«verb» the «noun» and return its «noun».'''
// eslint-disable-next-line «noun»/«kebab»
# The token is refreshed here because «camel» may take longer than its lifetime.
/** @param {string} password the password in plain text, never stored */
// why: the «noun» is «adj» until the «noun» has been read
-- tokens older than 30 days are removed by the nightly job
# type: ignore[arg-type]  # «pkg» has no stubs
/* key order matters: «noun», then «noun» */
# nosec B105: not a password, only its name
== page-package-json
"dependencies": { "«pkg»": "^«ver»", "«pkg»": "~«ver»" }
"engines": { "node": ">=«n:18-24»" }, "packageManager": "pnpm@«ver»+sha512.«hex:128»"
[project]↵name = "«svc»"↵dependencies = ["«pkg»>=«ver»", "«pkg»"]
gem "«noun»", "~> «ver»"
require github.com/«svc»/«noun» v«ver»
<PackageReference Include="«Class».Tokens" Version="«ver»" />
implementation("com.«svc»:«noun»-token:«ver»")
"jsonwebtoken": "^9.0.«n:0-9»", "passport-local": "^1.0.0"
«pkg» = { version = "«ver»", features = ["derive"] }
"exports": { "./password": "./dist/password.js" }
""",
    EACH,
)
