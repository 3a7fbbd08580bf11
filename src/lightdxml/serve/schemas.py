"""What requests and answers look like, for checks and for the description of the interface (OpenAPI)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lightdxml.serve.queries import MAX_LABELS, Document, SuggestOptions

# Documents of one request: Annif's limit.
MAX_DOCUMENTS = 32
# Labels that one request explains: each takes some milliseconds.
MAX_EXPLAINED = 50
# Characters of a text that is explained: the response has the position of every word.
MAX_EXPLAINED_TEXT = 100_000
# Labels of a document to learn, and characters of a name or an id.
_MAX_TAUGHT = 1000
_MAX_NAME = 1000
_MAX_RULES = 10_000
_MAX_BRANCHES = 100


class Strict(BaseModel):
    """A body whose values have exactly these types; what it does not name is ignored."""

    model_config = ConfigDict(strict=True)


class ProblemBody(Strict):
    """An error."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str


class ApiInfo(Strict):
    """Title and version of the API."""

    title: str
    version: str


class Backend(Strict):
    """The backend of a project."""

    backend_id: str


class Vocab(Strict):
    """The labels of a model."""

    vocab_id: str
    languages: list[str]
    size: int
    loaded: bool


class Vocabs(Strict):
    """All sets of labels."""

    vocabs: list[Vocab]


class Project(Strict):
    """A model, as Annif describes its projects."""

    project_id: str
    name: str
    language: str
    backend: Backend
    vocab: Vocab
    vocab_language: str
    is_trained: bool
    modification_time: str


class Projects(Strict):
    """All models."""

    projects: list[Project]


class Suggestion(Strict):
    """A label that is suggested. The score is the probability that it is right."""

    uri: str
    label: str
    notation: str | None
    score: float


class Results(Strict):
    """The labels of a document, best first."""

    results: list[Suggestion]


class BatchResults(Results):
    """The labels of one document of several."""

    document_id: str | None


class AnnifDocument(Strict):
    """A document. Of its metadata, `title` counts."""

    text: str
    document_id: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def title(self) -> str:
        """The title in the metadata; empty if there is none."""
        title = (self.metadata or {}).get("title")
        return title if isinstance(title, str) else ""


class AnnifDocuments(Strict):
    """Documents to find labels for."""

    documents: Annotated[list[AnnifDocument], Field(max_length=MAX_DOCUMENTS)]


NotEmpty = Annotated[str, Field(pattern=r"\S")]
LabelName = Annotated[str, Field(pattern=r"\S", max_length=_MAX_NAME)]
DocumentId = Annotated[str, Field(max_length=_MAX_NAME)]


class Subject(Strict):
    """A correct label; only its URI counts."""

    uri: LabelName
    label: str | None = None


class AnnifLabeledDocument(AnnifDocument):
    """A document with its correct labels. Of its metadata, `title` counts."""

    text: NotEmpty
    document_id: DocumentId | None = None
    subjects: Annotated[list[Subject], Field(min_length=1, max_length=_MAX_TAUGHT)]


AnnifLesson = Annotated[list[AnnifLabeledDocument], Field(min_length=1, max_length=MAX_DOCUMENTS)]


class LanguageRequest(Strict):
    """A text, and the languages that it may be in, as codes of two or three letters."""

    text: str
    languages: Annotated[list[str], Field(min_length=1, max_length=5)]


class LanguageScore(Strict):
    """The share of words that are in a language; null for words that are in none."""

    language: str | None
    score: float


class LanguageScores(Strict):
    """Languages, the most likely one first."""

    results: list[LanguageScore]


Labels = Annotated[list[str] | None, Field(min_length=1, max_length=_MAX_RULES)]
Branches = Annotated[list[str] | None, Field(min_length=1, max_length=_MAX_BRANCHES)]
Measure = Literal["auto", "micro-f1", "macro-f1", "samples-f1"]
Precision = Annotated[str, Field(pattern=r"^precision=0?\.[0-9]*[1-9][0-9]*$", max_length=20)]
Probability = Annotated[float, Field(ge=0, le=1)]


class SuggestRequest(Strict):
    """A document, and which of its labels are wanted.

    `threshold` is a probability, or a measure for which validation documents have shown the best one. `include` and
    `exclude` take URIs or names of labels. The `_branch` rules take concepts, and mean all below them, too.
    """

    # A misspelled option would be ignored otherwise.
    model_config = ConfigDict(strict=True, extra="forbid")

    text: NotEmpty
    title: str = ""
    id: str = ""
    k: Annotated[int, Field(ge=1, le=MAX_LABELS)] = 10
    threshold: Probability | Measure | Precision = 0.0
    by_frequency: bool = False
    tail: Probability = 0.0
    language: str | None = None
    include: Labels = None
    exclude: Labels = None
    include_branch: Branches = None
    exclude_branch: Branches = None

    def document(self) -> Document:
        """Return the document."""
        return Document(self.text, self.title, self.id)

    def options(self) -> SuggestOptions:
        """Return the options."""
        rules = {
            rule: None if (labels := getattr(self, rule)) is None else tuple(labels)
            for rule in ("include", "exclude", "include_branch", "exclude_branch")
        }
        return SuggestOptions(self.k, self.threshold, self.by_frequency, self.tail, **rules)


class ExplainRequest(SuggestRequest):
    """A document whose labels are to be explained."""

    text: Annotated[str, Field(pattern=r"\S", max_length=MAX_EXPLAINED_TEXT)]
    k: Annotated[int, Field(ge=1, le=MAX_EXPLAINED)] = 5


class Concept(Strict):
    """A concept above a label."""

    uri: str
    label: str


class Described(Suggestion):
    """A suggested label with how many training documents it had, and the concepts above it, the highest first."""

    training_documents: int
    broader: list[Concept]


class Suggested(Strict):
    """The labels of a document, best first."""

    model: str
    version: str
    labels: list[Described]


class Part(Strict):
    """A word, and how much it adds to the probability."""

    word: str
    adds: float


class Explained(Described):
    """A label whose probability is the sum of `base` and the contributions of words."""

    base: float
    name_match: str | None
    words: list[Part]


class Explanations(Strict):
    """Why a document gets its labels, and where its words are in the text, counted in code points."""

    model: str
    version: str
    labels: list[Explained]
    positions: dict[str, list[tuple[int, int]]]


class LabeledDocument(Strict):
    """A document with its correct labels, as names or URIs, and labels that were suggested and are wrong."""

    model_config = ConfigDict(strict=True, extra="forbid")

    text: NotEmpty
    title: str = ""
    id: DocumentId = ""
    labels: Annotated[list[LabelName], Field(min_length=1, max_length=_MAX_TAUGHT)]
    rejected: Annotated[list[LabelName], Field(max_length=_MAX_TAUGHT)] = []


class Lesson(Strict):
    """Documents to learn."""

    model_config = ConfigDict(strict=True, extra="forbid")

    documents: Annotated[list[LabeledDocument], Field(min_length=1, max_length=MAX_DOCUMENTS)]


class Drift(Strict):
    """How far a model has moved since training.

    Shares of documents that were learned later, of unknown words in the latest documents, and of labels that are new.
    `metrics` were measured on the latest `documents`, before they were learned. `reasons` say why the model should be
    trained again; there are none if it need not.
    """

    learned: float
    unknown_words: float
    new_labels: float
    documents: int
    metrics: dict[str, float]
    trained_metrics: dict[str, float]
    reasons: list[str]


class Learned(Strict):
    """What a lesson has changed: the step in the journal, how many labels were trained again and how many are new."""

    model: str
    version: str
    step: int
    labels: int
    new_labels: int
    seconds: float
    drift: Drift


class Entry(Strict):
    """An entry of the journal: what was done, when (UTC), and what it has changed."""

    step: int
    time: str
    kind: str
    figures: dict[str, Any]


class History(Strict):
    """What a model has learned since training, the latest entry last."""

    model: str
    version: str
    entries: list[Entry]
    drift: Drift


class ModelInfo(Strict):
    """What is known about a model."""

    id: str
    version: str
    modified: str
    labels: int
    documents: int
    features: int
    language: str
    languages: list[str]
    has_vocabulary: bool
    has_hierarchy: bool
    can_learn: bool
    views: list[str]
    metrics: dict[str, float]
    validation_documents: int
    lightdxml: str


class Models(Strict):
    """All models that are served."""

    models: list[ModelInfo]


class InferInput(Strict):
    """Texts as a tensor."""

    name: Literal["text"]
    datatype: Literal["BYTES"]
    shape: Annotated[list[int], Field(min_length=1, max_length=2)]
    data: Annotated[list[str], Field(max_length=MAX_DOCUMENTS)]


class InferParameters(Strict):
    """How many labels each text gets."""

    k: Annotated[int, Field(ge=1, le=MAX_LABELS)] = 10


class InferRequest(Strict):
    """Texts, as the Open Inference Protocol has them."""

    id: str | None = None
    inputs: Annotated[list[InferInput], Field(min_length=1, max_length=1)]
    parameters: InferParameters = InferParameters()
