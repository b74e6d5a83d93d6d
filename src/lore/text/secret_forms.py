"""Secret forms: keys that are known by how they look, whoever wrote them wherever."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FORMS", "Form"]


class Form(NamedTuple):
    """The look of one kind of secret; `before` must stand in front and is kept.

    Names can have a weak form too, so what fits it must also look random.
    """

    kind: str
    pattern: str
    before: str = ""
    weak: bool = False


_URL = r"[A-Za-z0-9_\-]"

FORMS = (
    Form("anthropic", rf"sk-ant-{_URL}{{16,}}", weak=True),
    Form("openrouter", r"sk-or-(?:v\d-)?[A-Za-z0-9]{24,}"),
    Form("openai", rf"sk-(?:proj|svcacct|service|admin|None)-{_URL}{{20,}}", weak=True),
    Form("openai", r"sk-[A-Za-z0-9]{20,}", weak=True),
    Form("openai-session", r"sess-[A-Za-z0-9]{32,}"),
    Form("langfuse", r"sk-lf-[0-9a-f\-]{32,}"),
    Form("google-api", rf"AIza{_URL}{{30,}}"),
    Form("google-oauth", rf"ya29\.{_URL}{{20,}}(?:\.{_URL}+)*"),
    Form("google-oauth", rf"GOCSPX-{_URL}{{20,}}"),
    Form("google-refresh", rf"1//0{_URL}{{25,}}"),
    Form("aws-key-pair", r"(?:AKIA|ASIA)[A-Z2-7]{16}[\s,:;\"'|/]{1,4}[A-Za-z0-9+/]{40}\b"),
    Form("aws-access-key", r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z2-7]{16}\b"),
    Form("aws-bedrock", r"ABSK[A-Za-z0-9+/]{60,}={0,2}"),
    Form("github", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    Form("github", r"github_pat_[A-Za-z0-9_]{22,}"),
    Form(
        "gitlab",
        rf"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt|ffct|wt)-{_URL}{{16,}}(?:\.{_URL}+)*",
    ),
    Form("gitlab", rf"GR1348941{_URL}{{16,}}"),
    Form("slack", r"xox[abceoprsd](?:\.xox[a-z])?-[A-Za-z0-9\-]{10,}", weak=True),
    Form("slack", r"xapp-\d-[A-Za-z0-9\-]{20,}"),
    Form(
        "slack-webhook",
        r"[A-Za-z0-9/+_\-]{20,}",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/",
    ),
    Form(
        "discord-webhook",
        rf"\d{{15,}}/{_URL}{{40,}}",
        r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/",
    ),
    Form(
        "teams-webhook",
        r"[a-f0-9\-@]{32,}/IncomingWebhook/[a-f0-9]{20,}/[a-f0-9\-]{20,}",
        r"webhook\.office\.com/webhookb2/",
    ),
    Form("stripe", r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
    Form("stripe", r"whsec_[A-Za-z0-9+/=]{24,}"),
    Form("twilio", r"SK[0-9a-f]{32}\b"),
    Form("twilio", r"[0-9a-f]{32}\b", r"AC[0-9a-f]{32}[\"']?\s?[,:]\s?[\"']?"),
    Form("sendgrid", rf"SG\.{_URL}{{16,}}\.{_URL}{{16,}}"),
    Form("brevo", r"x(?:keysib|smtpsib)-[a-f0-9]{40,}(?:-[A-Za-z0-9]+)?"),
    Form("mailgun", r"key-[0-9a-f]{32}\b"),
    Form("mailgun", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b"),
    Form("mailchimp", r"[0-9a-f]{32}-us\d{1,2}\b"),
    Form("npm", r"npm_[A-Za-z0-9]{30,}"),
    Form("pypi", rf"pypi-{_URL}{{32,}}", weak=True),
    Form("rubygems", r"rubygems_[a-f0-9]{40,}"),
    Form("crates", r"cio[A-Za-z0-9]{32}\b", weak=True),
    Form("hugging-face", r"(?:hf|api_org)_[A-Za-z0-9]{28,}"),
    Form("digitalocean", r"do[oprt]_v1_[a-f0-9]{40,}"),
    Form("discord", rf"[MNO][A-Za-z0-9_\-]{{22,27}}\.{_URL}{{6}}\.{_URL}{{27,}}", weak=True),
    Form("telegram", rf"(?:bot)?\d{{8,10}}:AA{_URL}{{32,}}"),
    Form("shopify", r"shp(?:at|ss|ca|pa|ua|tka)_[A-Fa-f0-9]{24,}"),
    Form("square", rf"(?:sq0[a-z]{{3}}-{_URL}{{20,}}|EAAA[A-Za-z0-9]{_URL}{{55,62}}\b)", weak=True),
    Form("facebook", r"EAA[B-Z][A-Za-z0-9]{100,}", weak=True),
    Form("databricks", r"dapi[a-f0-9]{32}(?:-\d)?\b"),
    Form("vault", rf"hv[sbr]\.{_URL}{{20,}}"),
    Form("vault", r"s\.[A-Za-z0-9]{24}\b", weak=True),
    Form("docker", rf"dckr_(?:pat|oat)_{_URL}{{20,}}"),
    Form("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    Form("notion", r"(?:secret_[A-Za-z0-9]{40,}|ntn_[A-Za-z0-9]{36,})"),
    Form("supabase", rf"sb(?:p|_secret)_{_URL}{{24,}}"),
    Form("cloudflare", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    Form("cloudflare", rf"cf(?:ut|at|k)_{_URL}{{32,}}"),
    Form("new-relic", r"NR(?:AK|RA|II|IQ|JS|BR)-[A-Za-z0-9]{19,}"),
    Form("new-relic", r"[a-f0-9]{36}(?:NRAL|[A-F0-9]{4}NRAL)\b"),
    Form("sentry", r"sntr(?:ys|yu)_[A-Za-z0-9_+/=\-]{32,}"),
    Form("sentry-dsn", r"[a-f0-9]{32}(?::[a-f0-9]{32})?", r"https?://"),
    Form("airtable", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{60,}"),
    Form("atlassian", r"AT(?:ATT|CTT|BB|STT)[A-Za-z0-9_\-=+/]{20,}(?:=[A-F0-9]{8})?"),
    Form("fly", r"fm[12][ar]?_[A-Za-z0-9+/=_,\-]{40,}"),
    Form("fly", rf"fo1_{_URL}{{36,}}"),
    Form("vercel", r"(?:vc[apikr]|vercel)_[A-Za-z0-9_]{20,}", weak=True),
    Form("netlify", rf"nf[pcoub]_{_URL}{{32,}}"),
    Form("heroku", rf"HRKU-{_URL}{{32,}}"),
    Form("groq", r"gsk_[A-Za-z0-9]{32,}"),
    Form("xai", r"xai-[A-Za-z0-9]{32,}"),
    Form("perplexity", r"pplx-[A-Za-z0-9]{32,}"),
    Form("replicate", r"r8_[A-Za-z0-9]{32,}"),
    Form("nvidia", rf"nvapi-{_URL}{{40,}}"),
    Form("cerebras", r"csk-[a-z0-9]{40,}"),
    Form("fireworks", r"fw_[A-Za-z0-9]{20,}", weak=True),
    Form("together", r"tgp_v1_[A-Za-z0-9_\-]{32,}"),
    Form("pinecone", rf"pcsk_{_URL}{{32,}}"),
    Form("langsmith", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{8,}"),
    Form("tavily", rf"tvly-{_URL}{{20,}}", weak=True),
    Form("elevenlabs", r"sk_[a-f0-9]{40,}"),
    Form("paystack", r"sk_[A-Za-z0-9]{32,}", weak=True),
    Form("terraform", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_URL}{{40,}}"),
    Form("doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{30,}"),
    Form("age", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    Form("grafana", r"gl(?:c_[A-Za-z0-9+/=]{32,}|sa_[A-Za-z0-9]{32}_[a-f0-9]{8})"),
    Form("planetscale", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.\-]{32,}"),
    Form("postman", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    Form("pulumi", r"pul-[a-f0-9]{40}\b"),
    Form("figma", rf"fig[dour]_{_URL}{{36,}}"),
    Form("posthog", r"ph[xs]_[A-Za-z0-9]{32,}"),
    Form("resend", r"re_[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}", weak=True),
    Form("render", r"rnd_[A-Za-z0-9]{28,}"),
    Form("neon", r"n(?:api|eon)_[a-z0-9]{40,}"),
    Form("sonarqube", r"sq[pua]_[a-f0-9]{40}\b"),
    Form("circleci", r"CCIP(?:AT|RJ)_[A-Za-z0-9_]{32,}"),
    Form("buildkite", r"bk(?:ua|aj|ct)_[A-Za-z0-9]{32,}"),
    Form("tailscale", r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}"),
    Form("one-password", rf"ops_eyJ{_URL}{{60,}}"),
    Form("alibaba", r"LTAI[A-Za-z0-9]{16,}", weak=True),
    Form("dynatrace", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{60,}"),
    Form("dropbox", rf"sl\.(?:u\.)?{_URL}{{60,}}"),
    Form("contentful", rf"CFPAT-{_URL}{{40,}}"),
    Form("hubspot", r"pat-(?:na|eu)\d-[a-f0-9\-]{36}"),
    Form("asana", r"[12]/\d{10,}(?:/\d{10,})?:[a-f0-9]{32}"),
    Form("jfrog", r"(?:AKCp|cmVmdGtu)[A-Za-z0-9]{50,}"),
    Form("razorpay", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    Form("typeform", rf"tfp_{_URL}{{40,}}"),
    Form("prefect", r"pn[ub]_[A-Za-z0-9]{36}\b"),
    Form("mapbox", rf"sk\.eyJ{_URL}{{40,}}\.{_URL}{{16,}}"),
    Form("azure-client", r"[A-Za-z0-9_~.\-]{3}[78]Q~[A-Za-z0-9_~.\-]{31,34}"),
    Form("azure-devops", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b"),
    Form("azure-storage", r"[A-Za-z0-9+/]{60,}={0,2}", r"AccountKey\s*=\s*"),
    Form("azure-key", r"[A-Za-z0-9+/]{40,}={0,2}", r"SharedAccessKey\s*=\s*"),
    Form("azure-sas", r"[A-Za-z0-9%+/=]{30,}", r"[?&;](?:amp;|u0026)?sig="),
    Form("azure-sas", r"[A-Za-z0-9%+/=]{30,}", r"SharedAccessSignature\s+sr=[^\s\"'&]*&sig="),
    Form("aws-signature", r"[a-f0-9]{64}", r"X-Amz-Signature="),
    Form("firebase", rf"(?:AAAA{_URL}{{7}}:)?APA91b{_URL}{{100,}}"),
    Form(
        "private-key",
        r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF"
        r"|BPUEVOU1NIIFBSSVZBVEUg)[A-Za-z0-9+/=]{40,}",
    ),
    Form("jwk", rf"{_URL}{{40,}}", r"d\\*[\"']\s*:\s*\\*[\"']", weak=True),
    Form("ssh-key", r"b3BlbnNzaC1rZXktdjEA[A-Za-z0-9+/=\n\\]{40,}"),
    Form("jwt", rf"ey[IJ][A-Za-z0-9]{_URL}{{7,}}\.ey[A-Za-z0-9]{_URL}{{6,}}(?:\.{_URL}+)*"),
    Form("jwt", rf"ey[IJ][A-Za-z0-9]{_URL}{{7,}}\.{_URL}*\.{_URL}{{8,}}(?:\.{_URL}+)*"),
    Form(
        "key",
        r"(?:[a-oq-z][a-z0-9]{1,11}|p[a-jl-tv-z][a-z0-9]{0,10})_(?:live|prod|sk|pat"
        r"|secret|token|api|key|apikey|access)_[A-Za-z0-9]{24,}",
        weak=True,
    ),
)
"""The more telling form stands first; each is bounded on the left by the one who searches."""
