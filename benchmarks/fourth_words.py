"""The words that the lines of the fourth corpus are filled with."""

from __future__ import annotations

__all__ = ["WORDS"]

WORDS: dict[str, tuple[str, ...]] = {
    name: tuple(text.split())
    for name, text in {
        "first": "anna bram chidi dana elif farid greta hugo ines jonas kofi lena mateo nadia "
        "omar petra quentin rosa sven tariq uma viktor wanda yusuf zoe",
        "user": "deploy svc_billing appuser ci-bot reporting etl_ro backend grafana_ro ops "
        "migrator n.okafor jlindqvist m_santos webapp sync-agent warehouse api_rw kbrandt "
        "integration admin sa_orders readonly_bi",
        "org": "northwind tallgrass blueharbor kestrel-labs papertrail-io meridian oakline "
        "lumenworks ferrostack quayside brightloom hexacorp marlin-data pinecrest",
        "app": "checkout ledger inventory notifier gateway scheduler crawler billing search "
        "profiles mailer ingest-api dashboard webhooks exporter importer catalog shipping auth",
        "env": "dev staging prod qa preview sandbox uat",
        "branch": "main develop release/2.4 feature/oauth-refresh fix/token-expiry chore/deps "
        "feat/password-reset hotfix/login refactor/secrets-loader",
        "noun": "harbor copper tiger lantern meadow falcon violet granite pepper orbit saddle "
        "walnut comet bridge anchor marble cactus velvet thunder biscuit rocket pillow dragon "
        "coffee winter summer monkey garden castle silver mango hockey guitar planet",
        "noun_de": "Regenbogen Kaffeetasse Sommer Winter Drache Gartenzaun Elefant Brotzeit "
        "Schluessel Fahrrad Leuchtturm Kirsche Wolke Bergsee",
        "noun_rom": "soleil jardin fromage lluvia camino naranja estrella girasole montagna "
        "gatto cachoeira abacaxi saudade papillon voiture tortuga",
        "file": "settings.py config.ts main.go app.rb deploy.yml values.yaml index.js server.rs "
        "Program.cs auth.kt login.php client.py tokens.go session.ts schema.sql handler.ex",
        "dir": "src lib app internal pkg services tests scripts infra config web api",
        "lib": "requests lodash serde tokio express fastapi pydantic react axios zod chalk "
        "click urllib3 numpy debug semver cryptography jsonwebtoken passport bcrypt dotenv",
        "SVC": "GITHUB STRIPE SENDGRID OPENAI ANTHROPIC SLACK TWILIO DATADOG SENTRY MAILGUN "
        "CLOUDFLARE ALGOLIA SHOPIFY ZENDESK HUBSPOT INTERCOM SEGMENT PAGERDUTY AIRTABLE NOTION",
        "svc": "github stripe sendgrid openai slack twilio datadog sentry mailgun cloudflare "
        "algolia shopify zendesk hubspot intercom segment pagerduty airtable notion linear",
        "PWVAR": "DB_PASSWORD POSTGRES_PASSWORD MYSQL_ROOT_PASSWORD REDIS_PASSWORD SMTP_PASSWORD "
        "ADMIN_PASSWORD RABBITMQ_DEFAULT_PASS MONGO_INITDB_ROOT_PASSWORD SMTP_PASS PGPASSWORD "
        "DATABASE_PASSWORD KEYSTORE_PASSWORD LDAP_BIND_PASSWORD GRAFANA_ADMIN_PASSWORD FTP_PASS "
        "MAIL_PASSWORD DJANGO_SUPERUSER_PASSWORD ELASTIC_PASSWORD KC_DB_PASSWORD BASIC_AUTH_PASS",
        "KEYVAR": "JWT_SECRET SESSION_SECRET APP_SECRET SECRET_KEY ENCRYPTION_KEY WEBHOOK_SECRET "
        "SECRET_KEY_BASE NEXTAUTH_SECRET AUTH_SECRET COOKIE_SECRET API_KEY INTERNAL_API_TOKEN "
        "REFRESH_TOKEN_SECRET OAUTH_CLIENT_SECRET SIGNING_SECRET SERVICE_TOKEN ACCESS_TOKEN "
        "MINIO_SECRET_KEY MEILI_MASTER_KEY HASURA_GRAPHQL_ADMIN_SECRET AZURE_CLIENT_SECRET "
        "GOOGLE_CLIENT_SECRET CRON_SECRET PAYLOAD_SECRET RAILS_MASTER_KEY STRIPE_WEBHOOK_SECRET",
        "PLAINVAR": "NODE_ENV LOG_LEVEL PORT TZ LANG EDITOR SHELL PAGER TERM COLUMNS WORKERS",
        "pwname": "password passwd db_password dbPassword admin_password smtp_password "
        "rootPassword user_password bind_password keystorePassword",
        "keyname": "api_key apiKey client_secret clientSecret access_token auth_token secret_key "
        "secretKey signing_secret webhook_secret jwt_secret private_token encryption_key "
        "refresh_token session_secret bot_token apiToken",
        "tld": "com io dev net org.uk de app cloud",
        "lvl": "INFO DEBUG WARN ERROR TRACE",
        "month": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
        "day": "Mon Tue Wed Thu Fri Sat Sun",
        "verb": "add fix drop rename refactor simplify document test bump move split guard",
        "method": "GET POST PUT PATCH DELETE",
        "region": "us-east-1 eu-west-1 eu-central-1 ap-southeast-2 us-west-2 ca-central-1",
        "mime": "image/png image/jpeg image/webp image/gif font/woff2",
    }.items()
}
"""Each by the name of the field that picks one of them."""
