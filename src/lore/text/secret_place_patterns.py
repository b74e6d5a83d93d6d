"""The patterns of places where a secret stands, and how each of them begins."""

from __future__ import annotations

from lore.text.secret_addresses import ADDRESS_HEADS, ADDRESSES
from lore.text.secret_codes import CODES
from lore.text.secret_commands import COMMAND_HEADS, COMMANDS
from lore.text.secret_raw_keys import RAW_KEY_HEADS, RAW_KEYS
from lore.text.secret_reading import (
    COLOUR,
    GAP,
    QUOTE,
)
from lore.text.secret_talk import (
    NEAR,
    SAID,
    TALK,
    TALK_HEADS,
)

_NAME_STARTS = (
    r"(?:passw(?:or)?d|passwort|kennwort|passphrase|passcode|pass|pwd|pw|psk|pswd|secret|key"
    r"|credentials?|creds|jwt|cookies?|mnemonic|phrase|[jp]h?p?sess(?:ion)?id|bearer|community"
    r"|totp|mfa_seed|otp_seed|totp_seed|_salt|api_hash|macaroon|pepper|\b[is]key|kye|credentails"
    r"|pas{1,3}(?:owr|wro|wr|wo|o|worr|swor)d|paswor|passwor|pssword|apssword|psasword|passwork"
    r"|pswr?d|paswd|tokne?|toekn|tokken|secert|sercet|secrt|secrect|sceret)"
)
_WORD_STARTS = (
    rf"{_NAME_STARTS}[\w.\-]*"
    r"|token(?:[_.\-0-9a-rt-z][\w.\-]*)?|pat(?:[_.\-0-9][\w.\-]*)?"
    r"|auth(?:[_.\-0-9a-np-z][\w.\-]*)?"
)
"""How names of secrets begin; tokens are counted and authors are named far more often."""

_PLURALS = r"(?:tokens|keys|secrets|passwords|passphrases|credentials)"
_TYPE = r":[ \t]*(?:&'?\w*[ \t]*)?[A-Za-z\[][\w.\[\]|<>? ]{0,40}[ \t]+="
_AFTER_NAME = rf"{QUOTE}?(?:{COLOUR}){{0,2}}"
_ASSIGN = (
    rf"{_AFTER_NAME}(?:\[\d*\]|[\])]{{0,2}}|%5[Dd]|\]{QUOTE})[*_]{{0,2}}"
    r"(?:[ \t]*\([^()\n]{1,24}\)|[ \t]+\[[^\[\]\n]{1,24}\]|[ \t]+string|[ \t]+\d{1,2})?[ \t.]*"
    rf"(?:=>|:=|:-|<-|\?\?=|\|\|=|\?=|\+=|!==?|={{1,3}}|{_TYPE}|:|\xef\xbc[\x9a\x9d]|%3[AaDd]|\\+u003[Dd])"
    r"[*_]{0,2}[ \t]*"
)
_ACCOUNT = r"(?:login|sign_?in|auth|credentials?|authenticate)"
_CONNECT = r"(?:mysqli?(?:_connect)?|pg_connect|getconnection|pdo|oci_connect|connect)"
_ARGUMENT = rf"{QUOTE}[^\"'`\n]{{0,80}}{QUOTE}[ \t]*,[ \t]*"
PLACES = (
    rf"(?i)(?P<header>authorization{QUOTE}?\]?[ \t]*(?::|=>|=|,|[ \t])[ \t]*)"
    r"|(?P<bearer>\bbearer[ \t]+)"
    r"|(?P<basic>\bbasic[ \t]+)"
    rf"|(?P<pair>{_ACCOUNT}{QUOTE}?[ \t]*[=:]?[ \t]*[(\[][ \t]*{_ARGUMENT}"
    rf"|\b{_CONNECT}[ \t]*\([^,()\n]{{0,80}},[ \t]*{_ARGUMENT}){QUOTE}"
    r"|(?P<account>\b(?:(?:creds|credentials|logins?|accounts?|zugangsdaten|identifiants"
    r"|credenciales)"
    r"[^\n:=/]{0,30}(?:[ \t]*[:=][ \t]*|[ \t]+(?:are|is)[ \t]+)|(?:use|try|with|as)[ \t]+)"
    r"[\w.@\-]{1,40}(?:[ \t]+/[ \t]+|:|/)|@[\w\-]+(?:\.[\w\-]+)+[ \t]+/[ \t]+"
    r"|[ \t]\xe2\x86\x92[ \t]+[\w.@\-]+[ \t]+[:/][ \t]+)[A-Za-z0-9]"
    rf"|{CODES}"
    rf"|{COMMANDS}"
    rf"|{RAW_KEYS}"
    rf"|(?P<keyed>\b(?:sign|verify|encode|decode|createhmac|hmac\.new|hmac|hmacshakeyfor|fernet"
    rf"|create\w?cipher\w*"
    rf"|encrypt|decrypt|keypair\w*|createclient|secretkey\w*|totp|hotp)\([^\n\"'`]{{0,80}}"
    rf"(?:{QUOTE}[\w\-]{{1,16}}{QUOTE},[ \t]*)?)[bfr]?{QUOTE}"
    rf"|(?P<typing>\b(?:type|fill|send_?keys|set_?value|enter_?text|change|input|paste)\w*"
    rf"\([\w.$]*(?:passw|pwd|pass\b|secret|token)[^\n,\"'`]*,"
    rf"[ \t]*(?:\{{[\w \t:{{]*)?){QUOTE}"
    rf"|(?P<asserted>assert\w*\([ \t]*){QUOTE}"
    r"|(?P<insert>\)[ \t\n]*values[ \t\n]*\()"
    rf"|(?P<list>{_PLURALS}{QUOTE}?[ \t]*[:=][ \t]*(?:\[\s*|(?:\r?\n|\\+n)[ \t]*-[ \t]+))"
    rf"|(?P<word>{_WORD_STARTS})(?:"
    rf"(?P<markup>:?(?:</\w{{1,8}}>)+:?{GAP}(?:<\w[^<>]{{0,40}}>{GAP}){{0,3}})"
    rf"|(?P<assign>{_ASSIGN})"
    rf"|(?P<fallback>{QUOTE}?[\])]{{0,2}}[ \t]*(?:\?\?|\|\||\bor\b|\?:)[ \t]*){QUOTE}"
    rf"|(?P<filled>[\"'\]>)}} ]{{0,6}}\.(?:value[ \t]*=|(?:perform\()?(?:fill|type|val|send_?keys"
    rf"|set_?value|input_text|(?:type|enter|replace|set)_?text|press_?sequentially"
    rf"|to_?be|to_?equal|to_?strict_?equal|is_?equal_?to|equals?|eq)\()[ \t]*){QUOTE}"
    rf"|(?P<comma>(?:{QUOTE}?[\])]{{0,2}}{QUOTE}[\])]{{0,2}}|/i?\))"
    rf"(?:[ \t]*,[ \t]*(?:with:[ \t]*)?|[ \t]+with[ \t]+)){QUOTE}"
    rf"|(?P<typed>(?:[ \t]+\w+)*{QUOTE}[ \t]*,[ \t]*"
    rf"(?:{QUOTE}?\w+{QUOTE}?[ \t]*:[ \t]*{QUOTE}?[\w\-]*{QUOTE}?[ \t]*,[ \t]*)*"
    rf"{QUOTE}?(?:text|value|input){QUOTE}?[ \t]*[:=][ \t]*){QUOTE}"
    rf"|(?P<kwarg>\([^()\n]{{0,60}}=[ \t]*){QUOTE}"
    rf"|(?P<call>[({{][ \t]*){QUOTE}"
    rf"|(?P<tag>{QUOTE}?>[ \t]*(?:<value>)?|</key>{GAP}<string>)"
    rf"|(?P<beside>{QUOTE}?,?(?:\s|\\+[nrt])*{QUOTE}?\bvalue{QUOTE}?[ \t]*[:=][ \t]*)"
    rf"|(?P<default>{QUOTE}[ \t]*\{{[^{{}}]{{0,100}}\bdefault[ \t]*=[ \t]*)"
    rf"|(?P<part>{QUOTE}(?:\r?\n|(?:\\+r)?\\+n){{2}})"
    rf"|{SAID}"
    r"|(?P<cell>[*_`]{0,3}[ \t]+(?:\||\xe2\x94\x82)[ \t]+)"
    rf"|(?P<literal>[ \t]+@?){QUOTE}"
    rf"|{NEAR})"
    rf"|(?P<valued>(?:value|default|result|plaintext){QUOTE}?[ \t]*[:=>][ \t]*|-value[ \t]+)"
    rf"{QUOTE}{{0,2}}[A-Za-z!@#$%^&*+_=?./\-]{{0,48}}(?:\d|(?-i:[a-z][A-Z][A-Z]|[A-Z][a-z][A-Z]))"
    rf"|{TALK}"
    rf"|{ADDRESSES}"
)
"""Every place; each group has its judge below."""

PLACE_HEADS = (
    rf"(?i){_NAME_STARTS}|token(?:[^s]|\z)|pat(?:[^a-z]|\z)|auth(?:[^o]|\z)|authorization"
    rf"|\b(?:bearer|basic)[ \t]|{_ACCOUNT}{QUOTE}?[ \t]*[=:]?[ \t]*[(\[][ \t]*{QUOTE}"
    rf"|\b{_CONNECT}[ \t]*\("
    r"|\b(?:creds|credentials|logins?|accounts?|zugangsdaten|identifiants|credenciales)[^\n/]"
    r"|\b(?:use|try|with|as)[ \t]+[\w.@\-]+(?:[ \t]+/[ \t]|:|/)"
    r"|@[\w\-]+(?:\.[\w\-]+)+[ \t]+/|[ \t]\xe2\x86\x92[ \t]"
    r"|\b(?:sign|verify|encode|decode|createhmac|hmac\.new|hmac|hmacshakeyfor|fernet"
    r"|create\w?cipher\w*|encrypt|decrypt|keypair\w*|createclient|secretkey\w*|totp|hotp)\("
    r"|\b(?:type|fill|send_?keys|set_?value|enter_?text|change|input|paste)\w*"
    r"\([\w.$]*(?:passw|pwd|pass\b|secret|token)"
    rf"|assert\w*\([ \t]*{QUOTE}|\)[ \t\n]*values[ \t\n]*\(|{_PLURALS}{QUOTE}?[ \t]*[:=]"
    rf"|(?:value|default|result|plaintext){QUOTE}?[ \t]*[:=>][ \t]*{QUOTE}{{0,2}}"
    r"[A-Za-z!@#$%^&*+_=?./\-]*(?:\d|(?-i:[a-z][A-Z][A-Z]|[A-Z][a-z][A-Z]))|-value[ \t]"
    rf"|{CODES}|{COMMAND_HEADS}|{RAW_KEY_HEADS}|{TALK_HEADS}|{ADDRESS_HEADS}"
)
"""How every place begins: a place whose beginning is not here is never found."""
