"""Keys as their makers document them, in the places where keys are met.

In a table every row is the name that a variable for the key has, and the key's form. The keys of a
table with a star are told by their form alone; the others need their name beside them.
"""

from __future__ import annotations

from third_draw import Kind, read_tables

__all__ = ["KEYS"]

EACH = 26
NAMED = (
    "@={}", 'export @="{}"', "  @: {}", '"@": "{}",', "- @={}", "$env:@ = '{}'", "ENV @={}",
    "set -gx @ {}", "@='{}' npm run «verb»:«noun»", "gh secret set @ --body '{}'", 'os.environ["@"] = "{}"',
    "docker run -d --rm -e @={} «svc»/«noun»:«ver»", "fly secrets set @={}", "    @: '{}'",
    "kubectl create secret generic «svc» --from-literal=@={}", "process.env.@ = '{}';",
    "so in .env I've put @={} and it still says unauthorized", "@ = \"{}\"", 'Environment="@={}"',
    "[«time»] + @={}", "declare -x @=\"{}\"", "| @ | {} |", "\\\"@\\\":\\\"{}\\\"", "setx @ {}",
    "vercel env add @ production <<< {}", "@ => '{}',", "<add key=\"@\" value=\"{}\" />",
    'os.Setenv("@", "{}")', "echo \"@={}\" >> .env", "heroku config:set @={} -a «svc»-prod",
)  # fmt: skip
BARE = (
    "Authorization: Bearer {}", "use this one for now: {} (I'll rotate it later)", "key: {}",
    "curl -s https://«site»/v1/«noun»s -H 'Authorization: Bearer {}'", "here you go {}",
    'client = «Class»(api_key="{}")', "const api = new «Class»('{}');", "token {}",
    "? Paste your token: {}", "Error: 401 invalid credentials for {}",
    '{"role":"user","content":"my key is {} please add it to the config"}', "-H \"x-api-key: {}\"",
    "cfg.«noun».Token = \"{}\"", "https://«site»/v2/«noun»s?access_token={}",
    "<td>API key</td><td><code>{}</code></td>",
    "WARN «noun»: request with header authorization=[Bearer {}] was refused",
)  # fmt: skip
TABLES = r"""
== key-aws-secret
AWS_SECRET_ACCESS_KEY «b64:40»
aws_secret_access_key «b64:40»
TF_VAR_aws_secret_key «b64:40»
S3_SECRET_KEY «b64:40»
== key-aws-session
AWS_SESSION_TOKEN IQoJb3JpZ2luX2Vj«b64:300-420»==
aws_session_token FwoGZXIvYXdzE«b64:260-380»=
== key-github *
GITHUB_TOKEN ghp_«an:36»
GH_TOKEN gho_«an:36»
GITHUB_APP_TOKEN ghs_«an:36»
GITHUB_REFRESH ghr_«an:36»
== key-github-fine *
GITHUB_TOKEN github_pat_11«up:20»_«an:59»
== key-gitlab *
GITLAB_TOKEN glpat-«b64u:20»
CI_DEPLOY_TOKEN gldt-«b64u:20»
RUNNER_TOKEN glrt-«b64u:20»
GITLAB_TRIGGER glptt-«hex:40»
GITLAB_FEED glft-«b64u:20»
== key-slack *
SLACK_BOT_TOKEN xoxb-«num:12»-«num:13»-«an:24»
SLACK_USER_TOKEN xoxp-«num:12»-«num:12»-«num:13»-«hex:32»
SLACK_APP_TOKEN xapp-1-A0«up:9»-«num:13»-«hex:64»
== key-slack-signing
SLACK_SIGNING_SECRET «hex:32»
SLACK_CLIENT_SECRET «hex:32»
== key-discord
DISCORD_BOT_TOKEN MT«an:24».G«an:5».«b64u:38»
DISCORD_TOKEN OD«an:22».Y«an:5».«b64u:27»
== key-telegram
TELEGRAM_BOT_TOKEN «n:1000000000-7999999999»:AA«b64u:33»
BOT_TOKEN «n:1000000000-7999999999»:AA«b64u:33»
== key-stripe *
STRIPE_SECRET_KEY sk_live_51«an:97»
STRIPE_KEY sk_test_«an:24»
STRIPE_RESTRICTED_KEY rk_live_51«an:97»
STRIPE_WEBHOOK_SECRET whsec_«an:32»
== key-openai *
OPENAI_API_KEY sk-proj-«b64u:74»T3BlbkFJ«b64u:74»
OPENAI_API_KEY sk-«an:20»T3BlbkFJ«an:20»
OPENAI_ADMIN_KEY sk-admin-«b64u:58»T3BlbkFJ«b64u:58»
OPENAI_API_KEY sk-svcacct-«b64u:60»T3BlbkFJ«b64u:60»
== key-anthropic *
ANTHROPIC_API_KEY sk-ant-api03-«b64u:93»AA
CLAUDE_CODE_OAUTH_TOKEN sk-ant-oat01-«b64u:93»AA
ANTHROPIC_ADMIN_KEY sk-ant-admin01-«b64u:93»AA
== key-llm-hosts *
OPENROUTER_API_KEY sk-or-v1-«hex:64»
GROQ_API_KEY gsk_«an:52»
XAI_API_KEY xai-«an:80»
PERPLEXITY_API_KEY pplx-«an:48»
REPLICATE_API_TOKEN r8_«an:37»
CEREBRAS_API_KEY csk-«low:48»
DEEPSEEK_API_KEY sk-«hex:32»
NVIDIA_API_KEY nvapi-«b64u:64»
FIREWORKS_API_KEY fw_«an:22»
== key-llm-plain
MISTRAL_API_KEY «an:32»
COHERE_API_KEY «an:40»
TOGETHER_API_KEY «hex:64»
DEEPGRAM_API_KEY «hex:40»
ASSEMBLYAI_API_KEY «hex:32»
AZURE_OPENAI_API_KEY «hex:32»
EXA_API_KEY «uuid»
ELEVENLABS_API_KEY sk_«hex:48»
== key-ml-tools *
HF_TOKEN hf_«an:34»
LANGSMITH_API_KEY lsv2_pt_«hex:32»_«hex:10»
LANGFUSE_SECRET_KEY sk-lf-«uuid»
PINECONE_API_KEY pcsk_«an:6»_«an:63»
TAVILY_API_KEY tvly-dev-«an:32»
VOYAGE_API_KEY pa-«b64u:43»
E2B_API_KEY e2b_«hex:40»
FIRECRAWL_API_KEY fc-«hex:32»
RUNPOD_API_KEY rpa_«up:38»«low:6»
== key-wandb
WANDB_API_KEY «hex:40»
COMET_API_KEY «an:25»
NEPTUNE_API_TOKEN eyJhcGlfYWRkcmVzcyI6«b64:120»==
== key-google *
GOOGLE_API_KEY AIzaSy«b64u:33»
GEMINI_API_KEY AIzaSy«b64u:33»
GOOGLE_CLIENT_SECRET GOCSPX-«b64u:28»
GOOGLE_REFRESH_TOKEN 1//0«n:1-9»«b64u:97»
GOOGLE_ACCESS_TOKEN ya29.a0A«b64u:160»
== key-azure
AZURE_CLIENT_SECRET «an:3»8Q~«b64u:34»
AZURE_STORAGE_KEY «b64:86»==
ARM_CLIENT_SECRET «an:3»8Q~«b64u:34»
AZURE_DEVOPS_EXT_PAT «low:52»
COSMOS_KEY «b64:86»==
SERVICEBUS_KEY «b64:43»=
== key-twilio
TWILIO_AUTH_TOKEN «hex:32»
TWILIO_API_SECRET «an:32»
VONAGE_API_SECRET «an:16»
== key-mail *
SENDGRID_API_KEY SG.«b64u:22».«b64u:43»
MAILGUN_API_KEY key-«hex:32»
MAILCHIMP_API_KEY «hex:32»-us«n:1-21»
BREVO_API_KEY xkeysib-«hex:64»-«an:16»
RESEND_API_KEY re_«an:8»_«an:24»
== key-packages *
NPM_TOKEN npm_«an:36»
PYPI_TOKEN pypi-AgEIcHlwaS5vcmcC«b64u:150»
GEM_HOST_API_KEY rubygems_«hex:48»
DOCKERHUB_TOKEN dckr_pat_«b64u:27»
NUGET_API_KEY oy2«low:43»
CARGO_REGISTRY_TOKEN cio«an:32»
== key-hosting *
DIGITALOCEAN_TOKEN dop_v1_«hex:64»
HEROKU_API_KEY HRKU-AA«b64u:58»
NETLIFY_AUTH_TOKEN nfp_«an:36»
RENDER_API_KEY rnd_«an:28»
FLY_API_TOKEN FlyV1 fm2_lJPECAAAAAAA«b64:140»
SUPABASE_ACCESS_TOKEN sbp_«hex:40»
SUPABASE_SECRET_KEY sb_secret_«b64u:22»_«an:8»
DOPPLER_TOKEN dp.pt.«an:43»
== key-hosting-plain
VERCEL_TOKEN «an:24»
CLOUDFLARE_API_TOKEN «b64u:40»
CF_API_KEY «hex:37»
RAILWAY_TOKEN «uuid»
HCLOUD_TOKEN «an:64»
LINODE_TOKEN «hex:64»
VULTR_API_KEY «up:36»
HEROKU_API_KEY «uuid»
== key-hashicorp *
VAULT_TOKEN hvs.CAESI«b64u:90»
VAULT_TOKEN hvb.AAAAAQ«b64u:120»
TFE_TOKEN «an:14».atlasv1.«b64u:67»
== key-data *
DATABRICKS_TOKEN dapi«hex:32»
PLANETSCALE_TOKEN pscale_tkn_«b64u:43»
PLANETSCALE_PASSWORD pscale_pw_«b64u:43»
NEON_API_KEY napi_«low:64»
AIRTABLE_TOKEN pat«an:14».«hex:64»
CONTENTFUL_TOKEN CFPAT-«b64u:43»
== key-data-plain
SNOWFLAKE_PASSWORD «pws»
ALGOLIA_ADMIN_KEY «hex:32»
UPSTASH_REDIS_REST_TOKEN AX«b64:50-58»=
MEILI_MASTER_KEY «b64u:43»
CONFLUENT_API_SECRET cflt«b64:60»
ELASTIC_PASSWORD «an:20»
== key-work *
NOTION_TOKEN ntn_«an:46»
NOTION_KEY secret_«an:43»
LINEAR_API_KEY lin_api_«an:40»
FIGMA_TOKEN figd_«b64u:40»
ATLASSIAN_TOKEN ATATT3xFfGF0«b64u:170»=«HEX:8»
BITBUCKET_APP_PASSWORD ATBB«an:32»
POSTMAN_API_KEY PMAK-«hex:24»-«hex:34»
HUBSPOT_TOKEN pat-na1-«uuid»
TYPEFORM_TOKEN tfp_«b64u:44»
== key-watch *
GRAFANA_TOKEN glsa_«an:32»_«hex:8»
NEW_RELIC_API_KEY NRAK-«up:27»
SENTRY_AUTH_TOKEN sntrys_eyJpYXQiOjE3«b64:100»_«b64:43»
SENTRY_AUTH_TOKEN sntryu_«hex:64»
DYNATRACE_TOKEN dt0c01.«up:24».«up:64»
POSTHOG_PERSONAL_KEY phx_«an:43»
TAILSCALE_AUTHKEY tskey-auth-k«an:10»CNTRL-«an:32»
== key-watch-plain
DD_API_KEY «hex:32»
DATADOG_APP_KEY «hex:40»
HONEYCOMB_API_KEY «an:22»
SPLUNK_HEC_TOKEN «uuid»
PAGERDUTY_TOKEN u+«b64u:18»
NGROK_AUTHTOKEN 2«an:26»_«an:21»
LOGDNA_INGESTION_KEY «hex:32»
ROLLBAR_ACCESS_TOKEN «hex:32»
== key-ci *
BUILDKITE_TOKEN bkua_«hex:40»
CIRCLECI_TOKEN CCIPAT_«an:22»_«hex:40»
SONAR_TOKEN sqp_«hex:40»
PULUMI_ACCESS_TOKEN pul-«hex:40»
PREFECT_API_KEY pnu_«an:36»
ARTIFACTORY_KEY AKCp8«an:68»
== key-ci-plain
JENKINS_API_TOKEN 11«hex:32»
SNYK_TOKEN «uuid»
CODECOV_TOKEN «uuid»
TRAVIS_TOKEN «an:22»
DRONE_TOKEN «an:32»
COVERALLS_REPO_TOKEN «an:33»
== key-shops *
SHOPIFY_ACCESS_TOKEN shpat_«hex:32»
SHOPIFY_API_SECRET shpss_«hex:32»
SQUARE_TOKEN sq0csp-«b64u:43»
FLW_SECRET_KEY FLWSECK-«hex:32»-X
PAYSTACK_SECRET_KEY sk_live_«hex:40»
SHIPPO_TOKEN shippo_live_«hex:40»
EASYPOST_API_KEY EZAK«hex:54»
== key-pay-plain
RAZORPAY_KEY_SECRET «an:24»
PLAID_SECRET «hex:30»
PAYPAL_CLIENT_SECRET E«b64u:79»
ADYEN_API_KEY AQE«b64:100»-«b64:44»=
BRAINTREE_PRIVATE_KEY «hex:32»
MOLLIE_API_KEY live_«an:30»
== key-social
TWITTER_BEARER_TOKEN AAAAAAAAAAAAAAAAAAAAA«an:24»%3D«an:50»
FACEBOOK_ACCESS_TOKEN EAA«an:160»
TWITCH_OAUTH_TOKEN oauth:«low:30»
SPOTIFY_CLIENT_SECRET «hex:32»
REDDIT_CLIENT_SECRET «b64u:30»
LINKEDIN_CLIENT_SECRET WPL_AP1.«an:16».«b64:6»==
DROPBOX_ACCESS_TOKEN sl.B«b64u:130»
== key-identity
AUTH0_CLIENT_SECRET «b64u:64»
OKTA_API_TOKEN 00«b64u:40»
CLERK_SECRET_KEY sk_live_«an:40»
COGNITO_CLIENT_SECRET «low:52»
KEYCLOAK_CLIENT_SECRET «an:32»
WORKOS_API_KEY sk_live_«b64:60»
OIDC_CLIENT_SECRET «b64u:40»
== key-age *
SOPS_AGE_KEY AGE-SECRET-KEY-1«bech:58»
== key-onepassword *
OP_SERVICE_ACCOUNT_TOKEN ops_eyJzaWduSW5BZGRyZXNzIjoi«b64u:300»
== key-own-app
SECRET_KEY «b64u:50»
JWT_SECRET «hex:64»
SESSION_SECRET «b64:43»=
NEXTAUTH_SECRET «b64:43»=
APP_KEY base64:«b64:43»=
DJANGO_SECRET_KEY django-insecure-«low:50»
SECRET_KEY_BASE «hex:128»
ENCRYPTION_KEY «hex:64»
COOKIE_SECRET «an:32»
WEBHOOK_SECRET «hex:40»
== key-own-password
DB_PASSWORD «pws»
POSTGRES_PASSWORD «pws»
MYSQL_ROOT_PASSWORD «pws»
SMTP_PASS «pws»
REDIS_PASSWORD «pws»
ADMIN_PASSWORD «pws»
KEYSTORE_PASSWORD «pws»
PGPASSWORD «pws»
RABBITMQ_DEFAULT_PASS «pws»
== key-china-cloud
ALIBABA_ACCESS_KEY_SECRET «an:30»
TENCENTCLOUD_SECRET_KEY «an:32»
YANDEX_OAUTH_TOKEN y0_Ag«b64u:52»
== key-atlas-maps *
MAPBOX_SECRET_TOKEN sk.eyJ1Ijoi«an:60».«b64u:22»
LAUNCHDARKLY_SDK_KEY sdk-«uuid»
"""


def _read() -> tuple[Kind, ...]:
    """Return a kind for each table: every row in every place that suits it."""
    kinds = []
    for head, rows in read_tables(TABLES):
        name, _, star = head.partition(" ")
        templates = [
            place.replace("@", row.split(" ", 1)[0]).replace("{}", f"⟦{row.split(' ', 1)[1]}⟧")
            for row in rows
            for place in (NAMED + BARE if star else NAMED)
        ]
        kinds.append(Kind(name, tuple(templates), EACH, wrapped=True))
    return tuple(kinds)


KEYS = _read()
