package main

import (
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search/query"
)

// word is what people search sources for.
var word = regexp.MustCompile(`[A-Za-z]{4,20}`)

// requests draws searches. They are for all of one to three words of the files, so that a word is as popular as it is
// frequent. One in three words is misspelt, and in most cases in no file.
type requests struct {
	rng  *rand.Rand
	docs []document
}

// saves is how often, while searches go on, a twelfth of the files is indexed again as it was.
const saves = 4

// search makes so many searches. Each shows what is stored of five files; then the test of a file is opened, if it
// has one.
func search(index bleve.Index, docs []document, ops int, seed uint64) error {
	r := requests{rand.New(rand.NewPCG(seed, 1)), docs}
	for i := range ops {
		if i%(ops/saves+1) == ops/saves/2 {
			first := r.rng.IntN(len(docs) - len(docs)/12)
			if err := fill(index, docs[first:first+len(docs)/12]); err != nil {
				return err
			}
		}
		request := bleve.NewSearchRequestOptions(r.query(), 5, 0, false)
		request.Fields = []string{"package", "lines"}
		if _, err := index.Search(request); err != nil {
			return err
		}
		id := docs[r.rng.IntN(len(docs))].ID
		if _, err := index.Document(strings.TrimSuffix(id, ".go") + "_test.go"); err != nil {
			return err
		}
	}
	return nil
}

func (r requests) query() query.Query {
	words := make([]string, 1+r.rng.IntN(3))
	for i := range words {
		words[i] = r.word()
	}
	q := bleve.NewMatchQuery(strings.Join(words, " "))
	q.SetField("text")
	q.SetOperator(query.MatchQueryOperatorAnd)
	return q
}

func (r requests) word() string {
	w := ""
	for w == "" {
		text := r.docs[r.rng.IntN(len(r.docs))].Text
		at := r.rng.IntN(len(text))
		w = word.FindString(text[at:min(at+100, len(text))])
	}
	if r.rng.IntN(3) == 0 { // two letters change places
		i := r.rng.IntN(len(w) - 1)
		w = w[:i] + w[i+1:i+2] + w[i:i+1] + w[i+2:]
	}
	return w
}
