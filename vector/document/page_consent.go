package document

import (
	"slices"
	"strings"

	"golang.org/x/net/html/atom"

	"satchel/agent"
)

// Dialogs that ask for consent to cookies are not text of a page, however long they
// are. Many sites have one of a few products, others their own with a usual name.

// consentProducts are the beginnings of the class names and ids of these products'
// elements, by their first letter, as far as consentName does not match them.
var consentProducts = byFirstLetter(`
	onetrust- ot-sdk- ot-pc- optanon
	cybotcookiebot cookiebotwidget
	usercentrics- uc-banner uc-center-container
	qc-cmp didomi- cmpbox cmpwrapper cmplz-cookiebanner cmplz-manage-consent
	truste- truste_ trustarc- teconsent
	osano-cm- cc-window cc-banner cc-revoke cc_banner cc_container
	cky- cli-modal clisettingspopup klaro brlbs- borlabscookie borlabs-cookie
	iubenda-cs- iubenda-tp- sp_message_ sp_choice cookiescript_ cookiefirst- axeptio_ termly-code-snippet
	t-consentprompt tarteaucitron moove_gdpr moove-gdpr fc-consent fc-dialog ccm-widget ccm-modal
	hs-eu-cookie shopify-pc__ eu-cookie-compliance sliding-popup ez-cookie _evidon evidon- cookiehub ch2-dialog
	consentmanager cookieinformation coioverlay cookie-information-template fides- ketch- transcend-consent
	pandectes- wpcc- eupopup sd-cmp gravitoconsent ccc-notify ccc-overlay ccc-module orejime cc-main cc--main
	dsgvoaio dsgvo_ rcb-banner cookieman- fusion-privacy-bar eprivacy`)

// consentName matches names such as "cookie-banner", "siteCookiesPopup", "gdpr_consent"
// and "bandeau-cookies".
var consentName = agent.Pattern(`(?:cookies?|gdpr|ccpa|consent|rgpd|lgpd|dsgvo)[-_]?(?:law|policy|consent|privacy|` +
	`usage|eu)?[-_]*(?:banner|notice|notification|pop-?up|modal|dialog|overlay|message|alert|layer|prompt|wall|` +
	`consent|law|disclaimer|info-?bar|bar(?:$|[-_])|hinweis|leiste|meldung|melding|bandeau|aviso)|` +
	`(?:aviso|bandeau|banner|bannière|hinweis|popup)[-_]*(?:de[-_]*)?(?:cookies?|rgpd|lgpd|dsgvo|gdpr)|` +
	`privacy[-_]?(?:banner|pop-?up|overlay|bar(?:$|[-_]))`)

// markConsent marks dialogs about cookies. A part that holds the page's main text or
// its headline is not such a dialog: products also mark the page that is behind it.
func (t *tree) markConsent() {
	holdsMain := t.holding(func(i int32) bool {
		n := &t.nodes[i]
		return n.tag == atom.H1 ||
			n.tag == atom.Main ||
			n.tag == atom.Article ||
			n.attr != 0 && t.attrsOf(i).role == "main"
	})
	for i := int32(1); i < int32(len(t.nodes)); i++ {
		n := &t.nodes[i]
		if n.attr == 0 ||
			t.boilerplate[i] ||
			n.tag == atom.Html ||
			n.tag == atom.Body ||
			holdsMain[i] {
			continue
		}
		if a := t.attrsOf(i); asksConsent(a.id) || asksConsent(a.class) {
			t.mark(i)
		}
	}
	if t.measure().textLength[0] == 0 {
		clear(t.boilerplate)
	}
}

func byFirstLetter(list string) map[byte][]string {
	beginnings := map[byte][]string{}
	for beginning := range strings.FieldsSeq(list) {
		beginnings[beginning[0]] = append(beginnings[beginning[0]], beginning)
	}
	return beginnings
}

func asksConsent(names string) bool {
	for name := range strings.FieldsSeq(names) {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "cookieconsent-opt") {
			continue // content that waits for consent
		}
		ofProduct := func(beginning string) bool { return strings.HasPrefix(name, beginning) }
		if slices.ContainsFunc(consentProducts[name[0]], ofProduct) ||
			mayNameConsent(name) && consentName().MatchString(name) {
			return true
		}
	}
	return false
}

var consentWords = strings.Fields("cookie consent gdpr ccpa rgpd lgpd dsgvo privacy")

// mayNameConsent saves matching most names.
func mayNameConsent(name string) bool {
	return slices.ContainsFunc(consentWords, func(word string) bool {
		return strings.Contains(name, word)
	})
}
