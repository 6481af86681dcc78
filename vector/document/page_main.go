package document

import (
	"slices"
	"strings"

	"golang.org/x/net/html/atom"
)

// A page's main content is found by its markup (main, article, nav, ARIA
// roles), by common class names of the rest of a page, and by the share of
// links in a block.

// minMainShare is the share of a page's text that the main content must have;
// otherwise less is removed.
const minMainShare = 0.25

// measures are the lengths of the text below each node, in bytes without white
// space: of all of it, and of links.
type measures struct{ textLength, linkLength []int32 }

func (m measures) share(i int32) float64 {
	if m.textLength[i] == 0 {
		return 0
	}
	return float64(m.linkLength[i]) / float64(m.textLength[i])
}

// measure measures the text that is not boilerplate.
func (t *tree) measure() measures {
	m := measures{make([]int32, len(t.nodes)), make([]int32, len(t.nodes))}
	inLink := make([]bool, len(t.nodes))
	for i := range t.nodes {
		n := &t.nodes[i]
		if i > 0 {
			inLink[i] = inLink[n.parent] || n.tag == atom.A
		}
		if n.text {
			m.textLength[i] = n.textLength
			if inLink[i] {
				m.linkLength[i] = m.textLength[i]
			}
		}
	}
	for i := len(t.nodes) - 1; i > 0; i-- {
		if parent := t.nodes[i].parent; !t.boilerplate[i] {
			m.textLength[parent] += m.textLength[i]
			m.linkLength[parent] += m.linkLength[i]
		}
	}
	return m
}

func textLength(text []byte) (n int32) {
	for _, c := range text {
		if c > ' ' {
			n++
		}
	}
	return n
}

// chooseMain marks boilerplate and returns the element with the main content.
func (t *tree) chooseMain() int32 {
	t.boilerplate = make([]bool, len(t.nodes))
	t.markConsent()
	least := slices.Clone(t.boilerplate)
	all := t.measure()
	t.markBoilerplateTags()
	marked := t.measure()
	if marked.textLength[0] == 0 { // a page of only headers and asides
		t.boilerplate = least
		return 0
	}
	before := append([]bool(nil), t.boilerplate...)
	t.markNamed(marked)
	m := t.measure()
	root := t.mainElement(m)
	if root == 0 {
		t.markLinkLists(m)
		m = t.measure()
	}
	if float64(m.textLength[root]) < minMainShare*float64(marked.textLength[0]-marked.linkLength[0]) ||
		m.textLength[root] == 0 {
		t.boilerplate, root = before, 0
	}
	if float64(marked.textLength[0]) < minMainShare*float64(all.textLength[0]-all.linkLength[0]) && root == 0 {
		t.boilerplate = least
	}
	return root
}

// mark marks a node and its descendants as boilerplate.
func (t *tree) mark(i int32) {
	for k := i; k < t.end(i); k++ {
		t.boilerplate[k] = true
	}
}

// boilerplateTags are elements around the text of a page.
var boilerplateTags = map[atom.Atom]bool{
	atom.Nav:    true,
	atom.Header: true,
	atom.Footer: true,
	atom.Aside:  true,
}

// boilerplateRoles are the ARIA roles of surroundings and of controls.
var boilerplateRoles = map[string]bool{
	"navigation": true, "banner": true, "contentinfo": true, "complementary": true, "search": true,
	"dialog": true, "alertdialog": true, "menu": true, "menubar": true, "toolbar": true,
}

// markBoilerplateTags marks boilerplate by tag and role. Inside the main content
// a header has the headline and an aside has a note, unless it consists of
// links.
func (t *tree) markBoilerplateTags() {
	within := make([]bool, len(t.nodes)) // inside main or an article
	measures := t.measure()
	for index := int32(1); index < int32(len(t.nodes)); index++ {
		node, attrs := &t.nodes[index], t.attrsOf(index)
		within[index] = within[node.parent] ||
			node.tag == atom.Main ||
			node.tag == atom.Article ||
			attrs.role == "main"
		if node.text || t.boilerplate[index] || attrs.role == "main" {
			continue
		}
		switch {
		case node.tag == atom.Header || node.tag == atom.Aside || attrs.role == "complementary":
			if within[index] && measures.share(index) < 0.5 {
				continue
			}
		case !boilerplateTags[node.tag] && !boilerplateRoles[attrs.role]:
			continue
		}
		t.mark(index)
	}
}

// excludedNames are classes and ids of what is not text, boilerplateNames of
// what surrounds the text, and weakNames of what does so if it is mostly
// links.
var excludedNames, boilerplateNames, weakNames = words("linenos lineno headerlink editsection toctitle skiplink"),
	words(`nav navbar navigation navheader navfooter breadcrumb breadcrumbs sidebar sphinxsidebar footer cookie cookies
	consent gdpr newsletter disqus advert advertisement ads sponsor sponsors catlinks printfooter jump skip
	searchbox searchform searchmenu nosearch pagination pager`),
	words(`menu mainmenu submenu menubar toc contents tableofcontents share sharing social comments related header banner topbar
	topnav sidenav search login promo popup modal copyright tags meta byline navbox noprint prev next prevnext rightnav leftnav`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}

// markNamed marks boilerplate by class and id. Elements with a third of the
// page's text or with its headline are kept: "has-sidebar" is a name of the
// content next to a sidebar.
func (t *tree) markNamed(measures measures) {
	text := measures.textLength[0] - measures.linkLength[0]
	holdsHeadline := t.holding(func(i int32) bool {
		return t.nodes[i].tag == atom.H1
	})
	for index := int32(1); index < int32(len(t.nodes)); index++ {
		node := &t.nodes[index]
		if node.attr == 0 ||
			t.boilerplate[index] ||
			node.tag == atom.Main ||
			headingTags[node.tag] ||
			t.attrsOf(index).role == "main" {
			continue
		}
		never, strong, weak := nameClass(t.attrsOf(index))
		if never {
			t.mark(index)
			continue
		}
		own := measures.textLength[index] - measures.linkLength[index]
		if !strong && !weak || 3*own > text || holdsHeadline[index] {
			continue
		}
		if strong || measures.share(index) >= 0.4 {
			t.mark(index)
		}
	}
}

func nameClass(a *attrs) (never, strong, weak bool) {
	for _, names := range []string{a.class, a.id} {
		for word := range strings.FieldsFuncSeq(names, func(r rune) bool {
			return r == ' ' || r == '-' || r == '_' || r == '\n' || r == '\t'
		}) {
			word = strings.ToLower(word)
			never, strong, weak =
				never || excludedNames[word], strong || boilerplateNames[word], weak || weakNames[word]
		}
	}
	return never, strong, weak
}

// holding returns which elements hold one that is accepted, or are one.
func (t *tree) holding(accepted func(i int32) bool) []bool {
	holds := make([]bool, len(t.nodes))
	for i := int32(len(t.nodes)) - 1; i > 0; i-- {
		holds[i] = holds[i] || accepted(i)
		parent := t.nodes[i].parent
		holds[parent] = holds[parent] || holds[i]
	}
	return holds
}

// mainElement returns the element that the page marks as its main content, or
// 0.
func (t *tree) mainElement(measures measures) int32 {
	var main, article int32
	larger := func(a, b int32) bool {
		return a == 0 || measures.textLength[b] > measures.textLength[a]
	}
	for i := int32(1); i < int32(len(t.nodes)); i++ {
		if t.boilerplate[i] || t.nodes[i].text {
			continue
		}
		switch {
		case t.nodes[i].tag == atom.Main || t.attrsOf(i).role == "main":
			if larger(main, i) {
				main = i
			}
		case t.nodes[i].tag == atom.Article && larger(article, i):
			article = i
		}
	}
	switch {
	case main > 0 && 2*measures.textLength[main] >= measures.textLength[0]:
		return main
	case article > 0 && 2*measures.textLength[article] >= measures.textLength[0]:
		return article
	}
	return main
}

// listTags are the elements used for lists of links.
var listTags = tags(atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Div, atom.P, atom.Td, atom.Center, atom.Section)

// markLinkLists marks blocks that are mostly links, four or more, in a page
// without structural markup, unless they are most of the page.
func (t *tree) markLinkLists(measures measures) {
	links := make([]int, len(t.nodes))
	for i := len(t.nodes) - 1; i > 0; i-- {
		if n := &t.nodes[i]; !t.boilerplate[i] {
			if n.tag == atom.A {
				links[i]++
			}
			links[n.parent] += links[i]
		}
	}
	for i := int32(1); i < int32(len(t.nodes)); i++ {
		if !t.boilerplate[i] &&
			listTags[t.nodes[i].tag] &&
			links[i] >= 4 &&
			measures.share(i) >= 0.8 &&
			2*measures.textLength[i] < measures.textLength[0] {
			t.mark(i)
		}
	}
}
