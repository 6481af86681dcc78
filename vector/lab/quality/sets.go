package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"satchel/agent"
)

// The names of further sets: see loaders.
const (
	library    = "library"
	typos      = "typing errors"
	languages  = "languages"
	codes      = "codes"
	unanswered = "unanswered"
	handbooks  = "handbooks"
	rules      = "rules"
	reference  = "reference"
)

// libraryPackages are the packages whose doc comments the second set of
// technical questions is about.
var libraryPackages = []string{
	"os", "encoding/xml", "html/template", "testing", "slices", "maps", "math/rand/v2", "net/mail", "text/tabwriter",
	"container/heap", "compress/gzip", "mime/multipart", "reflect", "unicode/utf8",
}

// loadLibrary reads a second technical set, with which nothing in the search was tuned.
func loadLibrary() (*set, error) { return loadManuals(library, libraryPackages, "library.tsv") }

// loadTypos reads the help desk's passages, and keywords with typing errors.
func loadTypos() (*set, error) { return loadPassages(typos, "helpdesk", "typos") }

// loadLanguages reads German, Spanish and French passages, and questions in the
// language of the passage that answers them.
func loadLanguages() (*set, error) { return loadPassages(languages, "languages", "languages") }

// loadHandbooks reads the handbooks of six small places, and questions with words
// of the text, with others, and of a word or two.
func loadHandbooks() (*set, error) { return loadPassages(handbooks, "handbooks", "handbooks") }

// loadRules reads the rules of places in German, Spanish, French, Portuguese,
// Italian and Dutch, and questions in the language of the passage that answers them.
func loadRules() (*set, error) { return loadPassages(rules, "rules", "rules") }

// loadReference reads the reference of a message broker, and questions by code,
// option or function, and in other words.
func loadReference() (*set, error) { return loadPassages(reference, "reference", "reference") }

// loadUnanswered reads the help desk's passages, and questions that none of them
// answers, so no result is right.
func loadUnanswered() (*set, error) { return loadPassages(unanswered, "helpdesk", "unanswered") }

// codeRecords is the number of records in the set of codes, and about the number of its
// chunks.
const codeRecords = 4000

// loadCodes makes up the stock list of a workshop, a paragraph for each part,
// and asks for some of the parts by their numbers, in several spellings.
func loadCodes() (*set, error) {
	random := rand.New(rand.NewPCG(16, 4000))
	s := &set{
		name:     codes,
		answers:  holds,
		chunking: agent.Chunking{Size: 1000, Method: "markdown"},
	}
	made, place :=
		words(`valve pump hose clamp gasket bearing spring washer relay fuse lamp switch`),
		words(`shelf drawer crate bin locker rack`)
	for from := 0; from < codeRecords; from += 500 {
		var text strings.Builder
		for i := from; i < from+500; i++ {
			code := fmt.Sprintf(
				"%c%c-%04d",
				'A'+random.IntN(26),
				'A'+random.IntN(26),
				i*2+random.IntN(2),
			)
			thing := made[random.IntN(len(made))]
			fmt.Fprintf(
				&text,
				"## Part %s\n\nThe %s %s is kept in %s %d of hall %d. %d are in stock, the supplier delivers it "+
					"within %d days, and it fits the machines of series %d.\n\n",
				code,
				thing,
				code,
				place[random.IntN(len(place))],
				random.IntN(90)+10,
				random.IntN(9)+1,
				random.IntN(400),
				random.IntN(60)+1,
				random.IntN(30)+1,
			)
			if i%67 == 0 {
				s.questions = append(s.questions, question{askFor(code, thing, i/67), code + " is kept in"})
			}
		}
		s.documents = append(s.documents, document{fmt.Sprintf("stock-%d.md", from/500), text.String()})
	}
	return s, nil
}

// askFor asks for a part in one of the ways in which people write its number.
func askFor(code, thing string, way int) string {
	switch way % 5 {
	case 0:
		return code
	case 1:
		return "where do we keep the " + thing + " " + strings.ToLower(code) + "?"
	case 2:
		return strings.ReplaceAll(code, "-", "") + " delivery time"
	case 3:
		return "how many of " + strings.ReplaceAll(code, "-", " ") + " are left"
	}
	return "stock of part number " + code
}

func words(list string) []string { return strings.Fields(list) }
