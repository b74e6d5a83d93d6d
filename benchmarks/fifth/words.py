"""Words that fields are drawn from: names of people, machines, files and things."""

from __future__ import annotations

__all__ = ["POOLS"]

POOLS: dict[str, tuple[str, ...]] = {
    "word": tuple(
        "amber anchor apple autumn badger bamboo basket beacon birch bishop blanket border bottle "
        "bramble bridge bronze butter cactus camera candle canyon carbon castle cedar cherry "
        "cinder circle clover cobalt coffee comet copper coral cotton crater crystal dagger desert "
        "dolphin dragon eagle ember engine falcon feather fiddle forest fossil garden ginger "
        "glacier granite hammer harbor hazel helmet hollow honey island ivory jacket jasper jungle "
        "kettle ladder lantern lemon lizard lumber magnet maple marble meadow mirror monkey "
        "mustard nectar needle nickel oasis ocean olive onion orbit orchid otter oyster paddle "
        "panther parrot pepper piano pickle pigeon pillow planet pocket pony prairie puzzle quartz "
        "rabbit raven ribbon river rocket saddle saffron salmon sandal shadow silver spider "
        "sparrow spruce summit sunset tango temple thistle thunder tiger timber tulip tunnel "
        "turtle umbrella velvet violet walnut willow window winter wizard yellow zephyr".split()
    ),
    "user": tuple(
        "admin anna bob carla deploy dmitri elena felix grace hugo ines jenkins jonas kim lars "
        "maria marek mike nadia olga pavel priya root sam svc_backup tom ubuntu vera wendy "
        "yusuf zoe".split()
    ),
    "svc": tuple(
        "api auth backend billing cart catalog checkout crm dashboard events gateway ingest "
        "inventory invoicing ledger mailer metrics notifier orders payments portal profile "
        "reports scheduler search shipping storefront sync users webhooks worker".split()
    ),
    "SVC": tuple(
        "ADMIN ANALYTICS APP AUTH BACKEND BILLING CRM DASHBOARD EVENTS GATEWAY GEO INTERNAL "
        "INVENTORY LEGACY MAIL METRICS ORDERS PARTNER PAYMENT PORTAL REPORTING SEARCH SHIPPING "
        "STAGING STATUS SYNC TRACKING WAREHOUSE WEATHER".split()
    ),
    "VNAME": tuple(
        "ADYEN_API_KEY AIRTABLE_API_KEY AIRTABLE_PAT ALCHEMY_API_KEY ALGOLIA_ADMIN_API_KEY "
        "ALGOLIA_ADMIN_KEY ALIBABA_CLOUD_ACCESS_KEY_SECRET ANTHROPIC_API_KEY "
        "ARTIFACTORY_API_KEY ASANA_ACCESS_TOKEN ASSEMBLYAI_API_KEY ATLASSIAN_API_TOKEN "
        "AUTH0_CLIENT_SECRET AWS_SECRET_ACCESS_KEY AZURE_CLIENT_SECRET AZURE_DEVOPS_EXT_PAT "
        "AZURE_DEVOPS_PAT AZURE_OPENAI_API_KEY AZURE_OPENAI_KEY AZURE_STORAGE_ACCOUNT_KEY "
        "AZURE_STORAGE_KEY BITBUCKET_APP_PASSWORD BLOB_READ_WRITE_TOKEN BRAVE_API_KEY "
        "BREVO_API_KEY BROWSERBASE_API_KEY BUILDKITE_API_TOKEN CARGO_REGISTRY_TOKEN "
        "CEREBRAS_API_KEY CF_API_TOKEN CIRCLECI_TOKEN CIRCLE_TOKEN CI_DEPLOY_TOKEN "
        "CLAUDE_API_KEY CLERK_SECRET_KEY CLOUDFLARE_API_TOKEN CODECOV_TOKEN COHERE_API_KEY "
        "COMPOSIO_API_KEY CONFLUENT_CLOUD_API_SECRET CONTENTFUL_MANAGEMENT_TOKEN CO_API_KEY "
        "CURSOR_API_KEY DATABRICKS_TOKEN DATADOG_API_KEY DD_API_KEY DD_APP_KEY DEEPGRAM_API_KEY "
        "DEEPSEEK_API_KEY DIGITALOCEAN_TOKEN DISCORD_BOT_TOKEN DISCORD_TOKEN DOCKERHUB_TOKEN "
        "DOCKER_TOKEN DOPPLER_TOKEN DO_TOKEN DROPBOX_ACCESS_TOKEN DT_API_TOKEN "
        "DUFFEL_ACCESS_TOKEN DYNATRACE_TOKEN E2B_API_KEY EASYPOST_API_KEY ELASTIC_API_KEY "
        "ELEVENLABS_API_KEY ELEVEN_API_KEY ETHERSCAN_API_KEY EXA_API_KEY EXPO_TOKEN "
        "FACEBOOK_ACCESS_TOKEN FIGMA_ACCESS_TOKEN FIGMA_TOKEN FIRECRAWL_API_KEY "
        "FIREWORKS_API_KEY FLW_SECRET_KEY FLY_API_TOKEN GEMINI_API_KEY GEM_HOST_API_KEY "
        "GH_TOKEN GITEA_TOKEN GITHUB_PAT GITHUB_TOKEN GITLAB_TOKEN GOOGLE_API_KEY "
        "GOOGLE_CLIENT_SECRET GRAFANA_API_KEY GRAFANA_TOKEN GROQ_API_KEY HCLOUD_TOKEN "
        "HEROKU_API_KEY HF_TOKEN HONEYCOMB_API_KEY HUBSPOT_ACCESS_TOKEN HUGGINGFACE_TOKEN "
        "INFRACOST_API_KEY INTERCOM_ACCESS_TOKEN JFROG_ACCESS_TOKEN JINA_API_KEY JIRA_API_TOKEN "
        "KAFKA_API_SECRET LANGCHAIN_API_KEY LANGFUSE_SECRET_KEY LANGSMITH_API_KEY "
        "LAUNCHDARKLY_SDK_KEY LD_API_KEY LINEAR_API_KEY LINODE_TOKEN MAILCHIMP_API_KEY "
        "MAILGUN_API_KEY MAPBOX_SECRET_TOKEN MERCURY_API_TOKEN META_ACCESS_TOKEN "
        "MISTRAL_API_KEY MODAL_TOKEN_SECRET MONGODB_ATLAS_CLIENT_SECRET NEON_API_KEY "
        "NETLIFY_AUTH_TOKEN NEW_RELIC_API_KEY NEW_RELIC_LICENSE_KEY NGC_API_KEY NGROK_AUTHTOKEN "
        "NODE_AUTH_TOKEN NOTION_API_KEY NOTION_TOKEN NPM_TOKEN NUGET_API_KEY NVIDIA_API_KEY "
        "OC_TOKEN OKTA_API_TOKEN OPENAI_API_KEY OPENAI_KEY OPENROUTER_API_KEY OPENSHIFT_TOKEN "
        "OP_SERVICE_ACCOUNT_TOKEN PADDLE_API_KEY PAGERDUTY_API_KEY PAGERDUTY_TOKEN "
        "PAYPAL_CLIENT_SECRET PERPLEXITY_API_KEY PINECONE_API_KEY PLAID_SECRET "
        "PLANETSCALE_SERVICE_TOKEN POLAR_ACCESS_TOKEN POSTHOG_PERSONAL_API_KEY POSTMAN_API_KEY "
        "POSTMARK_SERVER_TOKEN PREFECT_API_KEY PULUMI_ACCESS_TOKEN PYPI_TOKEN RAILWAY_TOKEN "
        "RAZORPAY_KEY_SECRET README_API_KEY RENDER_API_KEY REPLICATE_API_TOKEN RESEND_API_KEY "
        "RUNPOD_API_KEY SANITY_API_TOKEN SANITY_TOKEN SCW_SECRET_KEY SEGMENT_TOKEN "
        "SENDGRID_API_KEY SENTRY_AUTH_TOKEN SERPAPI_API_KEY SERPAPI_KEY SHIPPO_API_TOKEN "
        "SHOPIFY_ACCESS_TOKEN SHOPIFY_API_SECRET SLACK_BOT_TOKEN SLACK_TOKEN SNYK_TOKEN "
        "SONAR_TOKEN SPACES_SECRET_KEY SQUARE_ACCESS_TOKEN SRC_ACCESS_TOKEN STRIPE_API_KEY "
        "STRIPE_SECRET_KEY SUPABASE_ACCESS_TOKEN SUPABASE_SECRET_KEY TAILSCALE_AUTHKEY "
        "TAVILY_API_KEY TELEGRAM_BOT_TOKEN TENCENTCLOUD_SECRET_KEY TFE_TOKEN TF_API_TOKEN "
        "TOGETHER_API_KEY TS_AUTHKEY TWILIO_AUTH_TOKEN TWINE_PASSWORD TWITTER_BEARER_TOKEN "
        "TYPEFORM_TOKEN UPSTASH_REDIS_REST_TOKEN VAULT_TOKEN VERCEL_TOKEN VOYAGE_API_KEY "
        "WANDB_API_KEY WORKOS_API_KEY XAI_API_KEY X_BEARER_TOKEN YANDEX_API_KEY "
        "ZENDESK_API_TOKEN".split()
    ),
    "db": tuple(
        "analytics app_prod appdb billing core crm events inventory ledger main orders payments "
        "reporting shop staging tenants users warehouse".split()
    ),
    "host": tuple(
        "db.internal db-01.prod.acme.io 10.0.4.17 localhost 127.0.0.1 pg.staging.example.net "
        "mysql redis cache.acme.io rds-7.eu-west-1.rds.amazonaws.com 192.168.1.40 build-3 "
        "ep-cool-sun-12.eu-central-1.aws.neon.tech queue.svc.cluster.local db.hilltop.dev "
        "node2.mesh.lan data.orchard-labs.com".split()
    ),
    "site": tuple(
        "api.acme.io staging.acme.io app.hilltop.dev example.com api.orchard-labs.com "
        "internal.corp.net portal.fjord.no shop.lumen.store hooks.tidewater.app git.acme.io "
        "localhost:8080 localhost:3000 10.2.0.9:8443".split()
    ),
    "company": tuple(
        "acme hilltop orchard-labs tidewater lumen fjord bluepeak northwind".split()
    ),
    "file": tuple(
        "src/app.py src/auth/session.ts lib/client.rb internal/server/server.go main.rs "
        "app/config.php config/settings.py cmd/worker/main.go src/index.js docker-compose.yml "
        "deploy/values.yaml .env .env.local scripts/deploy.sh pkg/store/store.go "
        "src/main/java/io/acme/App.java tests/test_login.py README.md docs/setup.md "
        "terraform/main.tf ansible/site.yml src/lib/token.ts web/src/api.tsx".split()
    ),
    "mod": tuple(
        "auth billing cache client config crypto db events http jobs login mail models parser "
        "queue router session storage tokens utils views worker".split()
    ),
    "verb": tuple(
        "add build check clear create delete fetch find format get handle list load merge "
        "normalize parse read refresh remove render reset resolve save send split store sync "
        "update validate verify write".split()
    ),
    "noun": tuple(
        "account alert batch branch budget button chart column commit cursor customer event "
        "filter flag folder graph group header image invoice item job layout limit member menu "
        "message metric node order page panel plan product queue record report request response "
        "role route row rule schema segment session sheet task team template tenant ticket "
        "user view widget".split()
    ),
    "Noun": tuple(
        "Account Alert Batch Budget Cart Chart Customer Event Filter Folder Graph Image Invoice "
        "Item Job Layout Member Message Metric Node Order Page Payment Plan Product Queue Record "
        "Report Session Shipment Task Team Tenant Ticket User Widget".split()
    ),
    "pkg": tuple(
        "axios chalk click debug django esbuild express fastapi flask glob httpx jest lodash "
        "minimist next numpy pandas prettier pydantic react requests rollup semver serde "
        "sqlalchemy tokio typescript urllib3 vite vitest ws yargs zod".split()
    ),
    "region": tuple("us-east-1 us-west-2 eu-west-1 eu-central-1 ap-southeast-2 sa-east-1".split()),
    "level": tuple("DEBUG INFO WARN ERROR TRACE debug info warn error".split()),
    "month": tuple("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()),
    "tail": (
        "", "", "", " thanks", " thx", "!", " please", " pls", " :)", " ok?", " and go on",
        " then run it again", " and tell me what you see", ", it worked yesterday",
        " (will rotate it later)", " - don't commit it", ", keep it out of git", " 🙏",
    ),
    "lead": (
        "", "", "", "hey, ", "ok so ", "sure, ", "right, ", "hmm ", "no wait, ", "actually ",
        "sorry, ", "oh and ", "btw ", "fyi ", "one more thing: ", "yes. ", "also ", "alright, ",
    ),
    "thing": (
        "staging", "prod", "the staging db", "the prod box", "the admin panel", "the vpn",
        "the wifi", "the NAS", "the test account", "the demo tenant", "grafana", "jenkins",
        "the ftp server", "the smtp relay", "the router", "keycloak", "the postgres container",
        "the old wordpress", "the mongo cluster", "rabbitmq", "the sandbox", "the CI user",
        "the read replica", "the jump host", "sonarqube", "the registry", "minio", "elastic",
    ),
}  # fmt: skip
