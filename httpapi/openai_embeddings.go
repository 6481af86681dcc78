package httpapi

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"satchel/agent"
	"satchel/httpapi/rest"
)

// maxEmbedded limits the texts of one embeddings request.
const maxEmbedded = 256

// texts is one string or several.
type texts []string

// UnmarshalJSON accepts both forms; null is empty.
func (t *texts) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		if *t = nil; one != nil {
			*t = texts{*one}
		}
		return nil
	}
	if json.Unmarshal(data, (*[]string)(t)) != nil {
		return errors.New("must be a text or a list of texts")
	}
	return nil
}

type openAIEmbeddingsIn struct {
	Body struct {
		Model      string `json:"model,omitempty" example:"support"`
		Input      texts  `json:"input" types:"string,[]string" required:"true" doc:"A text or a list of up to 256 texts." example:"\"Where is the harbour?\""`
		Format     string `json:"encoding_format,omitempty" enum:"float,base64" doc:"Default: float."`
		Dimensions int    `json:"dimensions,omitempty" doc:"Must be the model's own number of dimensions if set."`
	}
}

type openAIEmbedding struct {
	Object    string `json:"object" example:"embedding"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding" types:"[]number,string" doc:"Numbers, or their little-endian float32 bytes in base64." example:"[0.25,-0.5]"`
}

type openAIEmbeddingsOut struct {
	Object string            `json:"object" example:"list"`
	Model  string            `json:"model"`
	Data   []openAIEmbedding `json:"data"`
	Usage  openAIUsage       `json:"usage"`
}

func (s *Server) openAIEmbeddings(call *rest.Call) error {
	in, err := rest.Bind[openAIEmbeddingsIn](call)
	if err != nil {
		return err
	}
	body := in.Body
	var is agent.Issues
	is.Check(len(body.Input) > 0 && len(body.Input) <= maxEmbedded, "input", "must be 1 to 256 texts")
	is.Check(
		body.Format == "" || body.Format == "float" || body.Format == "base64",
		"encoding_format",
		"must be float or base64",
	)
	for _, one := range body.Input {
		is.Check(one != "" && len(one) <= agent.MaxMessageLength, "input", "must be texts of 1 to 100000 bytes")
	}
	if err := is.Err(); err != nil {
		return err
	}
	vectors, model, err := s.index.Embed(call, call.DB, body.Input...)
	if err != nil {
		return err
	}
	if body.Dimensions != 0 && body.Dimensions != len(vectors[0]) {
		return agent.Invalid("dimensions", fmt.Sprintf("must be %d or left out", len(vectors[0])))
	}
	out := openAIEmbeddingsOut{
		Object: "list",
		Model:  model,
		Data:   make([]openAIEmbedding, len(vectors)),
	}
	for i, vector := range vectors {
		out.Data[i] = openAIEmbedding{"embedding", i, vector}
		if body.Format == "base64" {
			out.Data[i].Embedding = littleEndian(vector)
		}
		out.Usage.PromptTokens += int64(len(body.Input[i])+3) / 4
	}
	out.Usage.TotalTokens = out.Usage.PromptTokens
	return rest.WriteJSON(call.HTTP, http.StatusOK, out)
}

func littleEndian(vector []float32) string {
	raw := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
