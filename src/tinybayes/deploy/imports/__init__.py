"""Trees of other libraries: scikit-learn's estimators, and the model files of LightGBM and XGBoost."""
