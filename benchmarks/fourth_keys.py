"""Keys that vendors make in a form they document, and private keys in their wrappings."""

from __future__ import annotations

from fourth_draw import Kind, kinds

__all__ = ["KEYS"]

COUNT = 30

PLACES = (
    "{key}",
    "export {NAME}={key}",
    '"{key}"',
    "{at} DEBUG using {key}",
    "key: {key}",
    '{{"value": "{key}"}}',
    "- `{key}`",
    "echo {key} | pbcopy",
    "client = Client('{key}')",
    "{NAME}: {key}",
    "<value>{key}</value>",
    "+{NAME}={key}",
    '\\"auth\\": \\"{key}\\"',
    "found in {path}: {key}",
    "x = {key} # {user}",
)
"""Where such a key stands: its form alone must tell what it is."""

FORMS: dict[str, str] = {
    "github": r"""
‹!cat ghp_ + alnum 36›
‹!cat gho_ + alnum 36›
‹!cat ghs_ + alnum 36›
‹!cat ghu_ + alnum 36›
‹!cat ghr_ + alnum 76›
‹!cat github_pat_ + alnum 22 + _ + alnum 59›
""",
    "gitlab_npm": r"""
‹!cat glpat- + b64u 20›
‹!cat glrt- + b64u 20›
‹!cat gldt- + b64u 20›
‹!cat glptt- + hex 40›
‹!cat glpat- + b64u 27 + .01. + lower 9›
‹!cat npm_ + alnum 36›
‹!cat pypi-AgEIcHlwaS5vcmc + b64u 150›
‹!cat dckr_pat_ + b64u 27›
‹!cat rubygems_ + hex 48›
""",
    "models": r"""
‹!cat sk-proj- + b64u 74 + T3BlbkFJ + b64u 74›
‹!cat sk- + alnum 20 + T3BlbkFJ + alnum 20›
‹!cat sk-ant-api03- + b64u 93 + AA›
‹!cat sk-ant-admin01- + b64u 93 + AA›
‹!cat sk-or-v1- + hex 64›
‹!cat hf_ + letters 34›
‹!cat gsk_ + alnum 52›
‹!cat xai- + alnum 80›
‹!cat r8_ + alnum 37›
‹!cat pplx- + alnum 48›
‹!cat nvapi- + b64u 64›
‹!cat lsv2_pt_ + hex 32 + _ + hex 10›
""",
    "payments_chat": r"""
‹!cat sk_live_ + alnum 24›
‹!cat rk_live_ + alnum 99›
‹!cat sk_test_51 + alnum 97›
‹!cat whsec_ + alnum 32›
‹!cat xoxb- + digits 12 + - + digits 13 + - + alnum 24›
‹!cat xoxp- + digits 12 + - + digits 12 + - + digits 13 + - + hex 32›
‹!cat xapp-1-A + upper 10 + - + digits 13 + - + hex 64›
‹!cat sq0csp- + b64u 43›
‹!cat digits 10 + :AA + b64u 33›
‹!cat shpat_ + hex 32›
‹!cat SG. + b64u 22 + . + b64u 43›
‹!cat key- + hex 32›
""",
    "clouds": r"""
‹!cat AIzaSy + b64u 33›
‹!cat GOCSPX- + b64u 28›
‹!cat ya29.a0 + b64u 180›
‹!cat dop_v1_ + hex 64›
‹!cat hvs. + b64u 92›
‹!cat tskey-auth-k + alnum 10 + CNTRL- + alnum 32›
‹!cat pscale_pw_ + b64u 43›
‹!cat sbp_ + hex 40›
‹!cat dapi + hex 32›
‹!cat vercel_blob_rw_ + alnum 16 + _ + alnum 30›
‹!cat HRKU-AA + b64u 58›
‹!cat AGE-SECRET-KEY-1 + bech 58›
""",
    "products": r"""
‹!cat glsa_ + alnum 32 + _ + hex 8›
‹!cat dp.pt. + alnum 43›
‹!cat figd_ + b64u 40›
‹!cat pat + alnum 14 + . + hex 64›
‹!cat PMAK- + hex 24 + - + hex 34›
‹!cat ATATT3xFfGF0 + b64u 180›
‹!cat lin_api_ + alnum 40›
‹!cat ntn_ + digits 11 + alnum 35›
‹!cat sntrys_eyJ + alnum 80 + _ + alnum 43›
‹!cat NRAK- + upper 27›
‹!cat CFPAT- + b64u 43›
‹!cat phx_ + alnum 43›
‹!cat pul- + hex 40›
‹!cat sgp_ + hex 40›
""",
    "tokens": r"""
‹!jwt›
""",
}


def placed(forms: str) -> str:
    """Return the forms of a vendor's keys, each in some of the places."""
    keys = [form for form in forms.split("\n") if form]
    lines = []
    for turn in range(COUNT):
        place = PLACES[(turn * 7 + len(keys)) % len(PLACES)]
        lines.append(
            place.format(
                key=keys[turn % len(keys)], NAME="‹SVC›_TOKEN", at="‹at›", path="‹path›",
                user="‹user›",
            )
        )  # fmt: skip
    return "\n".join(lines)


PEM: dict[str, str] = {
    "files": r"""
-----BEGIN RSA PRIVATE KEY-----⏎‹!pem 12 nl›⏎-----END RSA PRIVATE KEY-----
-----BEGIN PRIVATE KEY-----⏎‹!pem 8 nl›⏎-----END PRIVATE KEY-----
-----BEGIN EC PRIVATE KEY-----⏎‹!pem 3 nl›⏎-----END EC PRIVATE KEY-----
-----BEGIN OPENSSH PRIVATE KEY-----⏎b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW⏎‹!pem 4 nl›⏎-----END OPENSSH PRIVATE KEY-----
-----BEGIN RSA PRIVATE KEY-----⏎Proc-Type: 4,ENCRYPTED⏎DEK-Info: AES-128-CBC,‹HEX 32›⏎⏎‹!pem 9 nl›⏎-----END RSA PRIVATE KEY-----
$ cat ~/.ssh/id_rsa⏎-----BEGIN RSA PRIVATE KEY-----⏎‹!pem 7 nl›
-----BEGIN PGP PRIVATE KEY BLOCK-----⏎⏎lQOY‹!pem 9 nl›⏎-----END PGP PRIVATE KEY BLOCK-----
---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----⏎Comment: "‹user›"⏎‹!pem 6 nl›⏎---- END SSH2 ENCRYPTED PRIVATE KEY ----
""",
    "wrapped": r"""
PRIVATE_KEY="-----BEGIN RSA PRIVATE KEY-----\n‹!pem 9 esc›\n-----END RSA PRIVATE KEY-----\n"
{"content":"{\"key\":\"-----BEGIN PRIVATE KEY-----\\n‹!pem 6 esc2›\\n-----END PRIVATE KEY-----\"}"}
tls.key: |⏎    -----BEGIN PRIVATE KEY-----⏎    ‹!pem 8 four›⏎    -----END PRIVATE KEY-----
+-----BEGIN PRIVATE KEY-----⏎+‹!pem 8 plus›⏎+-----END PRIVATE KEY-----
key = ("-----BEGIN EC PRIVATE KEY-----\n"⏎    "‹!pem 3 quote›\n"⏎    "-----END EC PRIVATE KEY-----")
const key = '-----BEGIN PRIVATE KEY-----\n' +⏎  '‹!pem 5 concat›\n' +⏎  '-----END PRIVATE KEY-----'
SSH_KEY=-----BEGIN OPENSSH PRIVATE KEY----- ‹!pem 6 space› -----END OPENSSH PRIVATE KEY-----
"key":"-----BEGIN RSA PRIVATE KEY-----\r\n‹!pem 8 crlf›\r\n-----END RSA PRIVATE KEY-----"
> -----BEGIN PRIVATE KEY-----⏎> ‹!pem 5 gt›⏎> -----END PRIVATE KEY-----
 | -----BEGIN RSA PRIVATE KEY-----⏎ | ‹!pem 5 bar›⏎ | -----END RSA PRIVATE KEY-----
<ds:key>-----BEGIN PRIVATE KEY-----⏎        ‹!pem 5 eight›⏎        -----END PRIVATE KEY-----</ds:key>
""",
    "others": r"""
PuTTY-User-Key-File-3: ssh-rsa⏎Encryption: none⏎Comment: ‹user›⏎Private-Lines: 6⏎‹!pem 6 nl›⏎Private-MAC: ‹hex 64›
SSH_PRIVATE_KEY_B64=‹!pem64›
  tls.key: ‹!pem64›
{"kty":"EC","crv":"P-256","x":"‹b64u 43›","y":"‹b64u 43›","d":"‹!b64u 43›"}
{"kty":"RSA","n":"‹b64u 342›","e":"AQAB","d":"‹!b64u 342›","kid":"‹uuid›"}
{"kty":"oct","alg":"HS256","k":"‹!b64u 43›"}
DEPLOYER_PRIVATE_KEY=0x‹!hex 64›
const wallet = new ethers.Wallet("0x‹!hex 64›", provider);
Private key: ‹!b64 32›⏎Public key: ‹b64 32›
accounts: ["0x‹!hex 64›"] // deployer private key
VAPID_PRIVATE_KEY=‹!b64u 43›
mnemonic: "‹!mnemonic›"
MNEMONIC='‹!mnemonic›'
otpauth://totp/‹org›:‹mail›?secret=‹!b32 32›&issuer=‹org›
TOTP secret: ‹!b32 32›
<RSAKeyValue><Modulus>‹b64 128›</Modulus><Exponent>AQAB</Exponent><P>‹b64 64›</P><D>‹!b64 128›</D></RSAKeyValue>
""",
}

KEYS: tuple[Kind, ...] = (
    *kinds("key", COUNT, {name: placed(forms) for name, forms in FORMS.items()}),
    *kinds("pem", COUNT, PEM),
)
