package n8n

// converters maps node types, without their packages, to their converters, except for
// those of services.json; see converterOf.
var converters map[string]func(*converter, *unit)

func init() {
	converters = map[string]func(*converter, *unit){
		"manualTrigger":          convertManual,
		"start":                  convertManual,
		"executeWorkflowTrigger": convertCalled,
		"errorTrigger":           convertError,
		"webhook":                convertWebhook,
		"respondToWebhook":       convertRespond,
		"formTrigger":            convertForm,
		"scheduleTrigger":        convertSchedule,
		"cron":                   convertCron,
		"interval":               convertInterval,
		"set":                    convertSet,
		"if":                     convertIf,
		"filter":                 convertFilter,
		"switch":                 convertSwitch,
		"noOp":                   convertNoOp,
		"wait":                   convertWait,
		"stopAndError":           convertStop,
		"executeWorkflow":        convertCall,
		"splitOut":               convertSplitOut,
		"aggregate":              convertAggregate,
		"limit":                  convertLimit,
		"sort":                   convertSort,
		"removeDuplicates":       convertRemoveDuplicates,
		"summarize":              convertSummarize,
		"itemLists":              convertItemLists,
		"renameKeys":             convertRenameKeys,
		"merge":                  convertMerge,
		"splitInBatches":         convertLoop,
		"code":                   convertCode,
		"function":               convertCode,
		"functionItem":           convertCode,
		"httpRequest":            convertHTTP,
	}
	for _, kind := range []string{
		"agent", "chainLlm", "conversationalAgent", "chainRetrievalQa", "chainSummarization",
	} {
		converters[kind] = convertAgent
	}
	for kind := range polls {
		converters[kind] = convertPoll
	}
	for kind := range webhookTriggers {
		converters[kind] = convertSubscribed
	}
	for _, kind := range []string{
		"InMemory", "Pinecone", "Qdrant", "Supabase", "PGVector", "Weaviate", "Milvus", "MongoDBAtlas", "Zep", "Redis",
		"AzureAISearch", "ChromaDB",
	} {
		converters["vectorStore"+kind] = convertStore
	}
	for kind, convert := range map[string]func(*converter, *unit){
		"informationExtractor": convertExtractor,
		"textClassifier":       convertClassifier,
		"sentimentAnalysis":    convertClassifier,
		"telegram":             convertTelegram,
		"slack":                convertSlack,
		"discord":              convertDiscord,
		"twilio":               convertTwilio,
		"whatsApp":             convertWhatsApp,
		"emailSend":            convertEmail,
		"gmail":                convertGmail,
		"dataTable":            convertTable,
		"dateTime":             convertDateTime,
		"rssFeedRead":          convertFeed,
		"googleSheets":         convertSheets,
		"mcpTrigger":           convertServer,
		"html":                 convertHTML,
		"htmlExtract":          convertExtraction,
		"markdown":             convertMarkdown,
		"xml":                  convertXML,
		"crypto":               convertCrypto,
		"graphql":              convertGraphQL,
		"compareDatasets":      convertCompare,
		"executionData":        convertMarked,
		"form":                 convertFormPage,
		"extractFromFile":      convertFromFile,
		"convertToFile":        convertToFile,
		"moveBinaryData":       convertMoveFile,
	} {
		converters[kind] = convert
	}
	for kind := range promptParts {
		converters[kind] = convertProvider
	}
	for kind := range messageTriggers {
		converters[kind] = convertMessageTrigger
	}
}

// converterOf returns the converter of a node type, or nil. services.json is parsed
// only when it is needed, since parsing it took a quarter of the instructions before
// main.
func converterOf(kind string) func(*converter, *unit) {
	if convert := converters[kind]; convert != nil {
		return convert
	}
	if _, ok := services()[kind]; ok {
		return convertService
	}
	return nil
}

// presets maps n8n's types of credentials to presets.
var presets = map[string]string{
	"httpBearerAuth":               "bearer",
	"googleSheetsOAuth2Api":        "google-sheets",
	"googleSheetsTriggerOAuth2Api": "google-sheets",
	"googleDriveOAuth2Api":         "google-drive",
	"gmailOAuth2":                  "google-gmail",
	"googleCalendarOAuth2Api":      "google-calendar",
	"googleDocsOAuth2Api":          "google-docs",
	"googleApi":                    "google-service-account",
	"googlePalmApi":                "google-gemini",
	"googleOAuth2Api":              "google-drive",
	"microsoftOutlookOAuth2Api":    "microsoft-graph",
	"microsoftOneDriveOAuth2Api":   "microsoft-graph",
	"microsoftExcelOAuth2Api":      "microsoft-graph",
	"microsoftTeamsOAuth2Api":      "microsoft-graph",
	"microsoftOAuth2Api":           "microsoft-graph",
	"openAiApi":                    "openai",
	"anthropicApi":                 "anthropic",
	"mistralCloudApi":              "mistral",
	"groqApi":                      "groq",
	"cohereApi":                    "cohere",
	"deepSeekApi":                  "deepseek",
	"openRouterApi":                "openrouter",
	"perplexityApi":                "perplexity",
	"xAiApi":                       "xai",
	"huggingFaceApi":               "huggingface",
	"elevenLabsApi":                "elevenlabs",
	"pineconeApi":                  "pinecone",
	"qdrantApi":                    "qdrant",
	"deepLApi":                     "deepl",
	"tavilyApi":                    "tavily",
	"firecrawlApi":                 "firecrawl",
	"braveSearchApi":               "brave-search",
	"serpApi":                      "serpapi",
	"apifyApi":                     "apify",
	"openWeatherMapApi":            "openweathermap",
	"notionApi":                    "notion",
	"airtableTokenApi":             "airtable",
	"airtableOAuth2Api":            "airtable",
	"airtableApi":                  "airtable",
	"codaApi":                      "coda",
	"nocoDbApiToken":               "nocodb",
	"baserowApi":                   "baserow",
	"dropboxApi":                   "dropbox",
	"dropboxOAuth2Api":             "dropbox",
	"boxOAuth2Api":                 "box",
	"figmaApi":                     "figma",
	"contentfulApi":                "contentful",
	"webflowApi":                   "webflow",
	"webflowOAuth2Api":             "webflow",
	"wordpressApi":                 "wordpress",
	"slackApi":                     "slack",
	"slackOAuth2Api":               "slack",
	"discordBotApi":                "discord",
	"twilioApi":                    "twilio",
	"sendGridApi":                  "sendgrid",
	"mailgunApi":                   "mailgun",
	"postmarkApi":                  "postmark",
	"brevoApi":                     "brevo",
	"sendInBlueApi":                "brevo",
	"mailchimpApi":                 "mailchimp",
	"mailjetEmailApi":              "mailjet",
	"zoomApi":                      "zoom",
	"zoomOAuth2Api":                "zoom",
	"intercomApi":                  "intercom",
	"hubspotApi":                   "hubspot",
	"hubspotAppToken":              "hubspot",
	"hubspotOAuth2Api":             "hubspot",
	"salesforceOAuth2Api":          "salesforce",
	"pipedriveApi":                 "pipedrive",
	"zendeskApi":                   "zendesk",
	"freshdeskApi":                 "freshdesk",
	"calendlyApi":                  "calendly",
	"typeformApi":                  "typeform",
	"jotFormApi":                   "jotform",
	"linearApi":                    "linear",
	"asanaApi":                     "asana",
	"trelloApi":                    "trello",
	"jiraSoftwareCloudApi":         "jira",
	"clickUpApi":                   "clickup",
	"mondayComApi":                 "monday",
	"todoistApi":                   "todoist",
	"githubApi":                    "github",
	"githubOAuth2Api":              "github",
	"gitlabApi":                    "gitlab",
	"gitlabOAuth2Api":              "gitlab",
	"supabaseApi":                  "supabase",
	"cloudflareApi":                "cloudflare",
	"sentryIoApi":                  "sentry",
	"pagerDutyApi":                 "pagerduty",
	"grafanaApi":                   "grafana",
	"elasticsearchApi":             "elasticsearch",
	"aws":                          "aws",
	"stripeApi":                    "stripe",
	"payPalApi":                    "paypal",
	"shopifyAccessTokenApi":        "shopify",
	"shopifyApi":                   "shopify",
	"wooCommerceApi":               "woocommerce",
	"xeroOAuth2Api":                "xero",
	"quickBooksOAuth2Api":          "quickbooks",
	"spotifyOAuth2Api":             "spotify",
	"redditOAuth2Api":              "reddit",
	"linkedInOAuth2Api":            "linkedin",
	"twitterOAuth2Api":             "x",
	"bitlyApi":                     "bitly",
}

func presetOf(kind string) string { return presets[kind] }
