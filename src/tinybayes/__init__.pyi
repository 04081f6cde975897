"""The public names for type checkers; `__init__.py` loads them when they are used."""

from tinybayes import compress as compress
from tinybayes import cost as cost
from tinybayes import data as data
from tinybayes import deploy as deploy
from tinybayes import errors as errors
from tinybayes import estimators as estimators
from tinybayes import infer as infer
from tinybayes import learn as learn
from tinybayes import model as model
from tinybayes import search as search
from tinybayes.compress import quantize as quantize
from tinybayes.compress import tie as tie
from tinybayes.data import Discretization as Discretization
from tinybayes.data import named
from tinybayes.data import open_dataset as open_dataset
from tinybayes.data import read_dataset as read_dataset
from tinybayes.deploy import from_sklearn as from_sklearn
from tinybayes.deploy import load as load
from tinybayes.deploy import save as save
from tinybayes.deploy.export import export as export
from tinybayes.deploy.price import model_cost as model_cost
from tinybayes.errors import TinybayesError as TinybayesError
from tinybayes.estimators import AnomalyDetector as AnomalyDetector
from tinybayes.estimators import BayesNetClassifier as BayesNetClassifier
from tinybayes.estimators import CircuitClassifier as CircuitClassifier
from tinybayes.estimators import CircuitDensity as CircuitDensity
from tinybayes.estimators import QuantizedNetClassifier as QuantizedNetClassifier
from tinybayes.estimators import TreeEnsembleClassifier as TreeEnsembleClassifier
from tinybayes.infer import ask as ask
from tinybayes.infer import class_scores as class_scores
from tinybayes.infer import compile_circuit as compile_circuit
from tinybayes.infer import estimate_width as estimate_width
from tinybayes.infer import evaluate as evaluate
from tinybayes.infer import explain as explain
from tinybayes.infer import log_likelihood as log_likelihood
from tinybayes.infer import marginals as marginals
from tinybayes.infer import predict_codes as predict_codes
from tinybayes.learn import chow_liu as chow_liu
from tinybayes.learn import learn_circuit as learn_circuit
from tinybayes.learn import learn_classifier as learn_classifier
from tinybayes.learn import learn_latent_tree as learn_latent_tree
from tinybayes.learn import maximum_likelihood as maximum_likelihood
from tinybayes.learn import naive_bayes as naive_bayes
from tinybayes.learn import relearn as relearn
from tinybayes.model import CPD as CPD
from tinybayes.model import BayesNet as BayesNet
from tinybayes.model import Circuit as Circuit
from tinybayes.model import Codebook as Codebook
from tinybayes.model import Dataset as Dataset
from tinybayes.model import Fixed as Fixed
from tinybayes.model import Float as Float
from tinybayes.model import LogLinear as LogLinear
from tinybayes.model import NeuralNet as NeuralNet
from tinybayes.model import Structure as Structure
from tinybayes.model import TreeEnsemble as TreeEnsemble
from tinybayes.model import Variable as Variable
from tinybayes.search.budget import Budget as Budget
from tinybayes.search.explore import explore as explore
from tinybayes.search.goal import Goal as Goal

datasets = named
__version__: str
